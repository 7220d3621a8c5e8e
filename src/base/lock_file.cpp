#include "base/lock_file.h"

#include <fmt/core.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace gpurota {
namespace {

// Polls, because flock itself has no timeout.
bool lock_within(int fd, std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kPace{10};
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK || std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kPace);
  }
  return true;
}

}  // namespace

Result<Fd> lock_file(const std::string& path, std::chrono::milliseconds patience) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return fail_errno("cannot open " + path, errno);
  if (!lock_within(fd.get(), patience)) {
    if (errno != EWOULDBLOCK) return fail_errno("cannot lock " + path, errno);
    std::array<char, 16> text{};
    const ssize_t size = ::pread(fd.get(), text.data(), text.size(), 0);
    int holder = 0;
    if (size > 0) std::from_chars(text.data(), text.data() + size, holder);
    return fail(Code::kLimit, fmt::format("{} is held by process {}", path, holder), holder);
  }
  const std::string pid = fmt::format("{}\n", ::getpid());
  // The pid is only for the message above: a full disk must not keep the daemon from starting.
  (void)!::ftruncate(fd.get(), 0);
  (void)!::pwrite(fd.get(), pid.data(), pid.size(), 0);
  return fd;
}

}  // namespace gpurota
