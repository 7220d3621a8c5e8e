#include "base/lock_file.h"

#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

namespace gpurota {
namespace {

using testing::TempDir;

TEST(LockFile, IsHeldByOneAndNamesItsHolder) {
  const TempDir temp;
  auto first = lock_file(temp.file("lock"));
  ASSERT_TRUE(first);
  const auto second = lock_file(temp.file("lock"));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kLimit);
  EXPECT_EQ(second.error().native, ::getpid());
  first->reset();
  EXPECT_TRUE(lock_file(temp.file("lock")));
}

TEST(LockFile, IsFreeOnceItsHolderWasKilled) {
  const TempDir temp;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto held = lock_file(temp.file("lock"));
    (void)!::write(ready[1], held ? "y" : "n", 1);
    ::pause();
    ::_exit(0);
  }
  char answer = 0;
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  ASSERT_EQ(answer, 'y');
  EXPECT_EQ(lock_file(temp.file("lock")).error().native, child);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(lock_file(temp.file("lock")));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(LockFile, FollowsNoSymbolicLink) {
  const TempDir temp;
  ASSERT_EQ(::symlink("/etc/passwd", temp.file("lock").c_str()), 0);
  EXPECT_FALSE(lock_file(temp.file("lock")));
}

TEST(LockFile, WaitsForAProcessThatIsAboutToEnd) {
  const testing::TempDir temp;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    const auto held = lock_file(temp.file("lock"));
    (void)!::write(ends[1], "x", 1);
    ::usleep(100000);  // as long as a kernel may need to clean up a killed process
    ::_exit(held ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ends[0], &byte, 1), 1);
  const auto locked = lock_file(temp.file("lock"), std::chrono::seconds(20));
  EXPECT_TRUE(locked) << locked.error().message;
  int status = 0;
  ::waitpid(holder, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace gpurota
