#include "cli/run/lookup.h"

#include "base/text.h"
#include "cli/exit_codes.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::cli {
namespace {

// The folders that the C library searches when PATH is not set.
constexpr const char* kDefaultPath = "/bin:/usr/bin";

// 0, or the errno that executing the file would give.
int why_not(const std::string& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return errno;
  if (S_ISDIR(info.st_mode)) return EISDIR;
  if (!S_ISREG(info.st_mode)) return EACCES;
  return ::access(file.c_str(), X_OK) == 0 ? 0 : errno;
}

// A folder that may not be searched counts as empty for the user.
bool exists(const std::string& file) {
  struct stat info {};
  return ::stat(file.c_str(), &info) == 0;
}

std::string text_of(int error) {
  const std::string text = std::strerror(error);
  if (error != EACCES) return text;
  return text + "; make it executable (chmod +x), or put its interpreter in front of it";
}

bool missing(int error) { return error == ENOENT || error == ENOTDIR; }

}  // namespace

tl::expected<std::string, LookupError> find_command(const std::string& name, const char* path) {
  const std::string shown = display_text(name, 80);
  if (name.find('/') != std::string::npos) {
    const int error = why_not(name);
    if (error == 0) return name;
    const int exit_code = missing(error) ? kExitNotFound : kExitCannotExecute;
    return tl::unexpected(
        LookupError{exit_code, fmt::format("cannot run {}: {}", shown, text_of(error))});
  }
  int refused = 0;
  std::string refused_file;
  std::string_view rest = path == nullptr ? kDefaultPath : path;
  for (bool more = !name.empty(); more;) {
    const std::size_t colon = rest.find(':');
    const std::string folder(rest.substr(0, colon));
    more = colon != std::string_view::npos;
    if (more) rest.remove_prefix(colon + 1);
    const std::string file = (folder.empty() ? "." : folder) + "/" + name;
    const int error = why_not(file);
    if (error == 0) return file;
    if (error == EACCES && refused == 0 && exists(file)) {
      refused = error;
      refused_file = file;
    }
  }
  if (refused != 0) {
    return tl::unexpected(LookupError{
        kExitCannotExecute,
        fmt::format("cannot run {}: {}", display_text(refused_file, 120), text_of(refused))});
  }
  return tl::unexpected(LookupError{
      kExitNotFound,
      fmt::format("there is no command '{}' on PATH (for a shell builtin or a pipe: gpurota run "
                  "-- bash -c '…')",
                  shown)});
}

std::string beside_us(const std::string& program) {
  std::string path(4096, '\0');
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  if (length <= 0) return {};
  path.resize(static_cast<std::size_t>(length));
  return path.substr(0, path.rfind('/') + 1) + program;
}

bool is_installed(const std::string& program) {
  for (const std::string& name : {program, "../sbin/" + program}) {
    const std::string file = beside_us(name);
    if (!file.empty() && why_not(file) == 0) return true;
  }
  return find_command(program, std::getenv("PATH")).has_value();
}

}  // namespace gpurota::cli
