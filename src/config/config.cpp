#include "config/config.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace gpurota::config {
namespace {

// Far more than any real configuration; keeps a device or a log given by mistake out of memory.
constexpr std::size_t kLargestFile = 1 << 20;

}  // namespace

Result<Config> load(const std::string& path, bool required) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             &std::fclose);
  if (!file) {
    if (errno == ENOENT && !required) return Config{};
    return fail_errno("cannot open the configuration " + path, errno);
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
