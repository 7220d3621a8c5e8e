// Reading the files of a configuration: load() of loaded.h.
#include "config/loaded.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

namespace gpurota::config {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

std::string why(int error_number) {
  const std::string reason = std::generic_category().message(error_number);
  if (error_number != EACCES && error_number != EPERM) return reason;
  return reason + ": only its owner and administrators of the machine can read it";
}

// Never blocks: a pipe in the file's place would block the daemon.
File open_at_once(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  return {fd < 0 ? nullptr : ::fdopen(fd, "r"), &std::fclose};
}

// Appends the file, or what is wrong with it.
class FileReader {
 public:
  void read(const std::string& path, bool required) {
    const File file = open_at_once(path);
    if (!file) {
      if (errno == ENOENT && !required) return;
      return complain(path, "cannot open it: " + why(errno));
    }
    struct stat about {};
    if (::fstat(::fileno(file.get()), &about) == 0 && S_ISFIFO(about.st_mode)) {
      return complain(path, "it is a pipe: write a file");
    }
    std::string text(left_ + 1, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file.get()));
    if (std::ferror(file.get())) return complain(path, "cannot read it: " + why(errno));
    if (text.size() > left_) {
      return complain(path, "the configuration is larger than 1 MiB: is this a gpurota.toml?");
    }
    left_ -= text.size();
    texts.push_back({path, std::move(text)});
  }

  void read_folder(const std::string& folder) {
    const std::unique_ptr<DIR, int (*)(DIR*)> opened(::opendir(folder.c_str()), &::closedir);
    if (!opened) {
      if (errno != ENOENT) complain(folder, "cannot open it: " + why(errno));
      return;
    }
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(opened.get())) {
      const std::string_view name = entry->d_name;
      if (!name.starts_with(".") && name.ends_with(".toml")) names.emplace_back(name);
      if (names.size() > kMostDropIns) {
        return complain(folder, fmt::format("it has more than {} files: put their settings "
                                            "together",
                                            kMostDropIns));
      }
    }
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) read(folder + "/" + name, true);
  }

  std::vector<Text> texts;
  std::vector<Problem> mistakes;

 private:
  void complain(const std::string& path, std::string what) {
    mistakes.push_back({{path, 0}, {}, std::move(what)});
  }

  std::size_t left_ = kMostBytes;
};

}  // namespace

Loaded load(const std::string& path, bool required) { return load_with(path, required, {}); }

Loaded load_with(const std::string& path, bool required, const Text& drop_in) {
  FileReader reader;
  reader.read(path, required);
  reader.read_folder(drop_in_folder(path));
  if (!drop_in.file.empty()) {
    std::erase_if(reader.texts, [&](const Text& text) { return text.file == drop_in.file; });
    const auto after = std::find_if(
        reader.texts.begin(), reader.texts.end(),
        [&](const Text& text) { return text.file != path && text.file > drop_in.file; });
    reader.texts.insert(after, drop_in);
  }
  Loaded loaded = parse(reader.texts);
  loaded.mistakes.insert(loaded.mistakes.begin(), reader.mistakes.begin(), reader.mistakes.end());
  return loaded;
}

}  // namespace gpurota::config
