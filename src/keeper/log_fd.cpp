#include "keeper/log_fd.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::keeper {

Result<LogFd> LogFd::open(int directory, const char* name) {
  Fd fd(::openat(directory, name, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return fail_errno("cannot open the log of a job", errno);
  return LogFd(std::move(fd));
}

Result<std::uint64_t> LogFd::size() {
  struct stat about = {};
  if (::fstat(fd_.get(), &about) != 0) return fail_errno("cannot look at a log", errno);
  return static_cast<std::uint64_t>(about.st_size);
}

Result<std::string> LogFd::read(std::uint64_t offset, std::size_t bytes) {
  std::string text(bytes, '\0');
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t count =
        ::pread(fd_.get(), text.data() + done, bytes - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno("cannot read a log", errno);
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  text.resize(done);
  return text;
}

Result<void> LogFd::append(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd_.get(), text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno("cannot write a log", errno);
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Result<void> LogFd::make_empty() {
  if (::ftruncate(fd_.get(), 0) != 0) return fail_errno("cannot empty a log", errno);
  return {};
}

}  // namespace gpurota::keeper
