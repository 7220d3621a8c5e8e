#include "config/config.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <sys/stat.h>

namespace gpurota::config {
namespace {

// Far more than any real configuration; keeps a device or a log given by mistake out of memory.
constexpr std::size_t kLargestFile = 1 << 20;

// Not waiting for anybody: a pipe in the file's place would hold the daemon up.
std::FILE* open_at_once(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  return fd < 0 ? nullptr : ::fdopen(fd, "r");
}

}  // namespace

Result<Config> load(const std::string& path, bool required) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(open_at_once(path), &std::fclose);
  if (!file) {
    if (errno == ENOENT && !required) return Config{};
    return fail_errno("cannot open the configuration " + path, errno);
  }
  struct stat about {};
  if (::fstat(::fileno(file.get()), &about) == 0 && S_ISFIFO(about.st_mode)) {
    return fail(Code::kInvalid, "the configuration " + path + " is a pipe: write a file");
  }
  std::string text(kLargestFile + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get())) return fail_errno("cannot read the configuration " + path, errno);
  if (text.size() > kLargestFile) {
    return fail(Code::kInvalid, path + " is larger than 1 MiB: is this a gpurota.toml?");
  }
  return parse(text, path);
}

}  // namespace gpurota::config
