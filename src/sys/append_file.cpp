#include "sys/append_file.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::sys {
namespace {

// The offset at which the last complete line ends.
std::uint64_t end_of_lines(int fd, std::uint64_t size) {
  char buffer[4096];
  while (size > 0) {
    const std::size_t part = std::min<std::uint64_t>(size, sizeof buffer);
    const ssize_t got = ::pread(fd, buffer, part, static_cast<off_t>(size - part));
    if (got != static_cast<ssize_t>(part)) return size;
    const std::string_view text(buffer, part);
    const std::size_t newline = text.rfind('\n');
    if (newline != text.npos) return size - part + newline + 1;
    size -= part;
  }
  return 0;
}

}  // namespace

Result<AppendFile> AppendFile::open(const std::string& path) {
  // Readable too, to look for a torn last line.
  Fd fd(::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
               0600));
  if (!fd) return fail_errno("cannot open " + path, errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return fail_errno("cannot look at " + path, errno);
  if (!S_ISREG(info.st_mode)) return fail(Code::kInvalid, path + " is not a plain file");
  if (::fchmod(fd.get(), 0600) != 0) return fail_errno("cannot protect " + path, errno);
  const auto size = static_cast<std::uint64_t>(info.st_size);
  const std::uint64_t whole = end_of_lines(fd.get(), size);
  if (whole != size && ::ftruncate(fd.get(), static_cast<off_t>(whole)) != 0) {
    return fail_errno("cannot cut the torn last line of " + path, errno);
  }
  return AppendFile(std::move(fd), whole);
}

Result<void> AppendFile::append(std::string_view line) {
  ssize_t written = 0;
  do {
    written = ::write(fd_.get(), line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(line.size())) {
    size_ += line.size();
    return {};
  }
  const int error = written < 0 ? errno : ENOSPC;
  // Half a line must not stay. If this truncation fails too, the next open() removes the half line.
  if (written > 0 && ::ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0) {
    size_ += static_cast<std::uint64_t>(written);
  }
  return fail_errno("cannot append", error);
}

}  // namespace gpurota::sys
