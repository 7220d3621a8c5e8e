#include "base/replace_file.h"

#include "base/fd.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpurota {
namespace {

struct Place {
  std::string folder, name;
};

Place place_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == path.npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

Fd open_folder(const std::string& folder) {
  return Fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

Result<void> write_whole(int fd, std::string_view text, mode_t mode, const std::string& path) {
  if (::fchmod(fd, mode) != 0) return fail_errno("cannot change the mode of " + path, errno);
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail_errno("cannot write " + path, errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(fd) != 0) return fail_errno("cannot write " + path, errno);
  return {};
}

}  // namespace

// Removes a draft that a crash left. The draft is always a new file, made in the opened folder, so
// that no user has it open who could not open it now.
Result<void> replace_file(const std::string& path, std::string_view text, mode_t mode,
                          const PrepareFile& prepare) {
  const Place place = place_of(path);
  const std::string fresh = path + ".new", fresh_name = place.name + ".new";
  const Fd folder = open_folder(place.folder);
  if (!folder) return fail_errno("cannot write " + fresh, errno);
  (void)::unlinkat(folder.get(), fresh_name.c_str(), 0);
  {
    const Fd fd(::openat(folder.get(), fresh_name.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode & 0600));
    if (!fd) return fail_errno("cannot write " + fresh, errno);
    auto written = write_whole(fd.get(), text, mode, fresh);
    if (written && prepare) written = prepare(fd.get());
    if (!written) {
      (void)::unlinkat(folder.get(), fresh_name.c_str(), 0);
      return written;
    }
  }
  if (::renameat(folder.get(), fresh_name.c_str(), folder.get(), place.name.c_str()) != 0) {
    return fail_errno("cannot write " + path, errno);
  }
  if (::fsync(folder.get()) != 0) return fail_errno("cannot write " + path, errno);
  return {};
}

Result<void> settle_folder_of(const std::string& path) {
  const Fd folder = open_folder(place_of(path).folder);
  if (!folder || ::fsync(folder.get()) != 0) return fail_errno("cannot write " + path, errno);
  return {};
}

}  // namespace gpurota
