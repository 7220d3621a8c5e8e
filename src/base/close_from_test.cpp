#include "base/close_from.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

// Runs `close` in a child, because it closes all descriptors. Returns 0 if `close` leaves exactly
// the descriptors below 100 open.
int left_by(void (*close)(int)) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    for (const int fd : {99, 100, 101, 200}) {
      if (::dup2(STDERR_FILENO, fd) != fd) ::_exit(1);
    }
    close(100);
    if (!is_open(STDERR_FILENO) || !is_open(99)) ::_exit(2);
    for (const int fd : {100, 101, 200}) {
      if (is_open(fd)) ::_exit(3);
    }
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return status;
}

TEST(CloseFrom, ClosesAllFromTheFirstOnAndNoneBelow) { EXPECT_EQ(left_by(close_from), 0); }

TEST(CloseFrom, DoesTheSameOneByOneForAnOldKernel) { EXPECT_EQ(left_by(close_each_from), 0); }

}  // namespace
}  // namespace gpurota
