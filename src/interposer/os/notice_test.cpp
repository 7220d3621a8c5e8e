// Each case runs in its own process, because standard error and the notices already written belong
// to a process.
#include "interposer/os/notice.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <string>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::interposer {
namespace {

// The text that a process writes to its standard error, a pipe.
std::string said_by(const std::function<void()>& program) {
  std::array<int, 2> pipe{};
  EXPECT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    (void)::dup2(pipe[1], 2);
    remember_standard_error();
    program();
    ::_exit(0);
  }
  // Read only after the process has ended, because a case may fill the pipe.
  EXPECT_EQ(::waitpid(pid, nullptr, 0), pid);
  (void)::close(pipe[1]);
  std::string text;
  std::array<char, 4096> part;
  for (ssize_t n = 0; (n = ::read(pipe[0], part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(n));
  }
  (void)::close(pipe[0]);
  return text;
}

TEST(Notice, IsOneLineOncePerReason) {
  EXPECT_EQ(said_by([] {
              for (int i = 0; i < 3; ++i) notice_once(Notice::kRefused, "refused %d", i);
              notice_once(Notice::kLeaseOver, "over");
            }),
            "gpurota: refused 0\ngpurota: over\n");
}

TEST(Notice, IsNotWrittenToAFileThatReplacedStderr) {
  EXPECT_EQ(said_by([] {
              std::array<int, 2> own{};
              if (::pipe(own.data()) != 0) ::_exit(1);
              const int before = ::dup(2);
              (void)::dup2(own[1], 2);
              notice_once(Notice::kRefused, "refused");
              (void)::fcntl(own[0], F_SETFL, O_NONBLOCK);
              char byte = 0;
              if (::read(own[0], &byte, 1) > 0) (void)!::write(before, "spoilt", 6);
            }),
            "");
}

TEST(Notice, NoticeNeverWaitsForAReader) {
  const std::string said = said_by([] {
    (void)::fcntl(2, F_SETFL, O_NONBLOCK);
    while (::write(2, "x", 1) == 1) {
    }
    (void)::fcntl(2, F_SETFL, 0);
    notice_once(Notice::kRefused, "refused");  // would block the test for ever
  });
  EXPECT_EQ(said.find("gpurota"), std::string::npos);
}

TEST(Notice, IsNotWrittenIfTurnedOff) {
  EXPECT_EQ(said_by([] {
              silence_notices();
              notice_once(Notice::kRefused, "refused");
            }),
            "");
  ASSERT_EQ(::setenv("GPUROTA_NOTICES", "0", 1), 0);
  EXPECT_EQ(said_by([] { notice_once(Notice::kRefused, "refused"); }), "");
  ASSERT_EQ(::unsetenv("GPUROTA_NOTICES"), 0);
}

TEST(Notice, SizesAreReadable) {
  EXPECT_STREQ(size_text(256ull << 20).text, "256 MiB");
  EXPECT_STREQ(size_text(3ull << 29).text, "1.5 GiB");
  EXPECT_STREQ(size_text(12).text, "12 B");
}

}  // namespace
}  // namespace gpurota::interposer
