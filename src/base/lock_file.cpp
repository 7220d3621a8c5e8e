#include "base/lock_file.h"

#include <fmt/core.h>

#include <array>
#include <cerrno>
#include <charconv>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace gpurota {

Result<Fd> lock_file(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return fail_errno("cannot open " + path, errno);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail_errno("cannot lock " + path, errno);
    std::array<char, 16> text{};
    const ssize_t size = ::pread(fd.get(), text.data(), text.size(), 0);
    int holder = 0;
    if (size > 0) std::from_chars(text.data(), text.data() + size, holder);
    return fail(Code::kLimit, fmt::format("{} is held by process {}", path, holder), holder);
  }
  const std::string pid = fmt::format("{}\n", ::getpid());
  // Only for the message above: a full disk must not keep the daemon from starting.
  (void)!::ftruncate(fd.get(), 0);
  (void)!::pwrite(fd.get(), pid.data(), pid.size(), 0);
  return fd;
}

}  // namespace gpurota
