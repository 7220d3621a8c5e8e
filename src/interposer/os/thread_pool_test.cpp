#include "interposer/os/thread_pool.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>

namespace gpurota::interposer {
namespace {

constexpr uint32_t kParts = 1000;

struct Counted {
  std::array<std::atomic<int>, kParts> calls{};
  static void count(void* self, uint32_t part) { ++static_cast<Counted*>(self)->calls[part]; }
};

TEST(ThreadPool, RunsEachPartOnce) {
  ThreadPool pool;
  for (const uint32_t parts : {0u, 1u, 2u, kParts}) {
    Counted counted;
    pool.divide(parts, Counted::count, &counted);
    for (uint32_t i = 0; i < kParts; ++i) EXPECT_EQ(counted.calls[i], i < parts ? 1 : 0) << i;
  }
  pool.stop();
}

TEST(ThreadPool, WorksAgainAfterItWasStopped) {
  ThreadPool pool;
  for (int round = 0; round < 50; ++round) {
    Counted counted;
    for (int i = 0; i < 3; ++i) pool.divide(kParts, Counted::count, &counted);
    pool.stop();
    for (const auto& calls : counted.calls) ASSERT_EQ(calls, 3);
  }
}

TEST(ThreadPool, StoppingWithoutThreadsDoesNothing) {
  ThreadPool pool;
  pool.stop();
  pool.stop();
}

}  // namespace
}  // namespace gpurota::interposer
