#include "base/fd.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

namespace gpurota {
namespace {

int open_null() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

TEST(Fd, IsEmptyUntilItHoldsSomething) {
  const Fd fd;
  EXPECT_FALSE(fd);
  EXPECT_EQ(fd.get(), -1);
}

TEST(Fd, ClosesWhatItHoldsAtTheEndOfItsScope) {
  const int raw = open_null();
  ASSERT_GE(raw, 0);
  {
    const Fd fd(raw);
    EXPECT_TRUE(fd);
    EXPECT_TRUE(is_open(raw));
  }
  EXPECT_FALSE(is_open(raw));
}

TEST(Fd, MovingLeavesTheSourceEmptyAndTheDescriptorOpen) {
  const int raw = open_null();
  Fd first(raw);
  const Fd second(std::move(first));
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): that is the point
  EXPECT_EQ(second.get(), raw);
  EXPECT_TRUE(is_open(raw));
}

TEST(Fd, AssigningClosesWhatWasThereBefore) {
  const int old_raw = open_null();
  const int new_raw = open_null();
  Fd fd(old_raw);
  fd = Fd(new_raw);
  EXPECT_FALSE(is_open(old_raw));
  EXPECT_EQ(fd.get(), new_raw);
  EXPECT_TRUE(is_open(new_raw));
}

TEST(Fd, AssigningToItselfKeepsTheDescriptor) {
  Fd fd(open_null());
  Fd& alias = fd;
  fd = std::move(alias);
  EXPECT_TRUE(is_open(fd.get()));
}

TEST(Fd, ReleaseReturnsTheOpenDescriptor) {
  int raw = -1;
  {
    Fd fd(open_null());
    raw = fd.release();
    EXPECT_FALSE(fd);
  }
  EXPECT_TRUE(is_open(raw));
  ::close(raw);
}

TEST(Fd, ResetTwiceClosesOnce) {
  Fd fd(open_null());
  const int raw = fd.get();
  fd.reset();
  const Fd reused(open_null());  // takes the lowest free number, the one just closed
  ASSERT_EQ(reused.get(), raw);
  fd.reset();
  EXPECT_TRUE(is_open(reused.get()));
}

}  // namespace
}  // namespace gpurota
