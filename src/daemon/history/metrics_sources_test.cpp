// Tests of counters that only metrics have.
#include "daemon/history/recovered_memory.h"
#include "daemon/history/wait_times.h"

#include <gtest/gtest.h>

#include <numeric>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;

GpuSample sample_of(const char* gpu, const std::vector<pid_t>& pids) {
  GpuSample sample;
  sample.uuid = {gpu};
  for (const pid_t pid : pids) sample.processes.push_back({pid, gib(1), false});
  return sample;
}

TEST(RecoveredMemory, IsCountedOnceAndFromLeasesOnly) {
  RecoveredMemory memory;
  memory.on_sample(sample_of("a", {1, 2, 3}), {{1, gib(8)}, {2, gib(4)}});
  memory.on_sample(sample_of("b", {1}), {{1, gib(2)}});
  EXPECT_TRUE(memory.total().is_zero());
  // Memory that a living process has freed does not count. Two processes have ended, one of them
  // without a lease.
  memory.on_sample(sample_of("a", {1}), {{1, gib(6)}});
  EXPECT_EQ(memory.total(), gib(4));
  memory.on_sample(sample_of("a", {1}), {{1, gib(6)}});
  EXPECT_EQ(memory.total(), gib(4));
  memory.on_sample(sample_of("a", {}), {});
  memory.on_sample(sample_of("b", {}), {});
  EXPECT_EQ(memory.total(), gib(12));
}

TEST(RecoveredMemory, MemoryOfAListedProcessIsNotFreeThoughItsLeaseIsGone) {
  RecoveredMemory memory;
  memory.on_sample(sample_of("a", {1}), {{1, gib(8)}});
  memory.on_sample(sample_of("a", {1}), {});
  memory.on_sample(sample_of("a", {}), {});
  EXPECT_TRUE(memory.total().is_zero()) << "it was nobody's lease any more";
}

TEST(WaitTimes, EachWaitIsInOneOfABoundedNumberOfSteps) {
  WaitTimes waits;
  for (const auto waited : {-5s, 0s, 1s, 2s, 60s, 3600s, 30 * 24 * 3600s}) waits.add(waited);
  const proto::Waits got = waits.get();
  EXPECT_EQ(got.bounds_seconds.size() + 1, got.counts.size());
  EXPECT_EQ(got.counts[0], 3u);
  EXPECT_EQ(got.counts[1], 1u);
  EXPECT_EQ(got.counts[2], 1u);
  EXPECT_EQ(got.counts[5], 1u);
  EXPECT_EQ(got.counts.back(), 1u);
  EXPECT_EQ(std::accumulate(got.counts.begin(), got.counts.end(), std::uint64_t{0}), 7u);
  EXPECT_EQ(got.seconds, 1 + 2 + 60 + 3600 + 30 * 24 * 3600);
}

}  // namespace
}  // namespace gpurota::daemon
