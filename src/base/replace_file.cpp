#include "base/replace_file.h"

#include "base/fd.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpurota {
namespace {

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

Result<void> replace_file(const std::string& path, std::string_view text, mode_t mode,
                          const PrepareFile& prepare) {
  const std::string fresh = path + ".new";
  {
    const Fd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode));
    if (!fd) return fail_errno("cannot write " + fresh, errno);
    auto written = write_whole(fd.get(), text, mode, fresh);
    if (written && prepare) written = prepare(fd.get());
    if (!written) {
      (void)::unlink(fresh.c_str());
      return written;
    }
  }
  if (::rename(fresh.c_str(), path.c_str()) != 0) return fail_errno("cannot write " + path, errno);
  return settle_folder_of(path);
}

Result<void> settle_folder_of(const std::string& path) {
  const Fd folder(
      ::open(path.substr(0, path.rfind('/')).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::fsync(folder.get()) != 0) return fail_errno("cannot write " + path, errno);
  return {};
}

}  // namespace gpurota
