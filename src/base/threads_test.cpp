#include "base/threads.h"

#include "testing/no_threads.h"

#include <gtest/gtest.h>

namespace gpurota {
namespace {

TEST(Threads, RunTheirBody) {
  bool ran = false;
  auto thread = start_thread([&ran] { ran = true; });
  ASSERT_TRUE(thread);
  thread->join();
  EXPECT_TRUE(ran);
}

TEST(Threads, ThreadThatCannotBeStartedIsAnError) {
  const testing::NoThreads none;
  const auto thread = start_thread([] {});
  ASSERT_FALSE(thread);
  EXPECT_EQ(thread.error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace gpurota
