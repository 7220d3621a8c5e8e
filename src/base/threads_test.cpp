#include "base/threads.h"

#include <gtest/gtest.h>

#include <limits>

#include <pthread.h>

namespace gpurota {
namespace {

// For as long as it lives no thread can be had: its stack would not fit the address space.
class NoThreads {
 public:
  NoThreads() {
    (void)::pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    (void)::pthread_attr_init(&huge);
    (void)::pthread_attr_setstacksize(&huge, std::numeric_limits<std::size_t>::max() / 4);
    (void)::pthread_setattr_default_np(&huge);
    (void)::pthread_attr_destroy(&huge);
  }
  ~NoThreads() {
    (void)::pthread_setattr_default_np(&before_);
    (void)::pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_;
};

TEST(Threads, RunTheirBody) {
  bool ran = false;
  auto thread = start_thread([&ran] { ran = true; });
  ASSERT_TRUE(thread);
  thread->join();
  EXPECT_TRUE(ran);
}

TEST(Threads, ThatCannotBeHadAreAnError) {
  const NoThreads none;
  const auto thread = start_thread([] {});
  ASSERT_FALSE(thread);
  EXPECT_EQ(thread.error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace gpurota
