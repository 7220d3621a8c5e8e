#include "base/standard_streams.h"

#include <gtest/gtest.h>

#include <cerrno>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota {
namespace {

// Runs in a child, which may close its own streams; the exit code says what did not hold.
template <class Check>
int in_child(Check check) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(check());
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

bool fails_with_ebadf(ssize_t result) { return result == -1 && errno == EBADF; }

TEST(StandardStreams, NumbersOfClosedStreamsAreNotReused) {
  EXPECT_EQ(in_child([] {
              for (int fd = 0; fd < 3; ++fd) (void)::close(fd);
              occupy_closed_streams();
              return ::open("/dev/null", O_RDWR) > 2 ? 0 : 1;
            }),
            0);
}

TEST(StandardStreams, ClosedStreamStaysUnusable) {
  EXPECT_EQ(in_child([] {
              for (int fd = 0; fd < 3; ++fd) (void)::close(fd);
              occupy_closed_streams();
              char byte = 0;
              if (!fails_with_ebadf(::read(0, &byte, 1))) return 1;
              if (!fails_with_ebadf(::write(1, &byte, 1))) return 2;
              return fails_with_ebadf(::write(2, &byte, 1)) ? 0 : 3;
            }),
            0);
}

TEST(StandardStreams, ExecutedProgramInheritsStandardStreamsUnchanged) {
  EXPECT_EQ(in_child([] {
              (void)::close(2);
              const int before = ::fcntl(1, F_GETFD);
              occupy_closed_streams();
              if (::fcntl(1, F_GETFD) != before) return 1;
              return (::fcntl(2, F_GETFD) & FD_CLOEXEC) != 0 ? 0 : 2;
            }),
            0);
}

}  // namespace
}  // namespace gpurota
