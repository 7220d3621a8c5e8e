// Tests how much usage is lost by a kill -9 of the daemon, or by a full disk.
#include "daemon/gpus/fake_world_test.h"
#include "daemon/history/recorder.h"
#include "testing/fake_history.h"

#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;
using testing::FakeHistory;

class UsageKillTest : public FakeWorldTest {
 protected:
  WallTime wall() const {
    return std::chrono::time_point_cast<WallTime::duration>(WallTime(1000h) + (loop.now() - zero));
  }
  Recorder::Parts parts(FakeHistory& history) {
    return {loop,    &history, "", config, processes, gpus, [this] { return wall(); },
            nullptr, nullptr,  {}};
  }
  // Half of the GPU, from now on.
  LeaseEntry& make_lease() {
    LeaseEntry& entry = leases.emplace(LeaseId{1}, processes).first->second;
    entry.lease.id = LeaseId{1};
    entry.lease.since = wall();
    entry.lease.gpus = {{kGpu, gib(12), std::nullopt}};
    return entry;
  }
  static ports::StoredUsage stored(const FakeHistory& history) {
    const auto at = history.usage.find({LeaseId{1}, kGpu});
    return at == history.usage.end() ? ports::StoredUsage() : at->second;
  }

  const TimePoint zero = loop.now();
  std::map<LeaseId, LeaseEntry> leases;
};

TEST_F(UsageKillTest, KillAtAnyTimeLosesNoGpuTimeOfARunningLease) {
  FakeHistory history;
  Recorder first(parts(history));
  ASSERT_TRUE(first.start({}));
  first.on_lease_change(make_lease(), false);
  std::uint64_t passed = 0;
  for (const auto step : {1s, 30s, 29s, 7s, 100s}) {
    loop.advance(step);
    passed += static_cast<std::uint64_t>(step.count());
    FakeHistory after = history;
    Recorder second(parts(after));
    ASSERT_TRUE(second.start(leases));
    second.flush();
    EXPECT_EQ(stored(after).gpu_ms, passed * 500);
  }
}

TEST_F(UsageKillTest, KillLosesAtMostTheLastMinuteOfMemoryAndOfAnEndingLease) {
  constexpr std::uint64_t kPeriod = 60, kMib = 2048;
  FakeHistory history;
  Recorder recorder(parts(history));
  ASSERT_TRUE(recorder.start({}));
  recorder.on_lease_change(make_lease(), false);
  recorder.on_use(kGpu, {{LeaseId{1}, gib(2)}});
  for (std::uint64_t second = 1; second <= 300; ++second) {
    loop.advance(1s);
    EXPECT_GE(stored(history).mib_ms + kPeriod * 1000 * kMib, second * 1000 * kMib) << second;
    EXPECT_GE(stored(history).gpu_ms + kPeriod * 500, second * 500) << second;
  }
}

TEST_F(UsageKillTest, EndOnAFullDiskIsStoredOnceThereIsSpace) {
  FakeHistory history;
  Recorder recorder(parts(history));
  ASSERT_TRUE(recorder.start({}));
  history.full = true;
  recorder.on_lease_change(make_lease(), false);
  loop.advance(10s);
  recorder.on_lease_change(leases.at(LeaseId{1}), true);
  loop.advance(10s);
  EXPECT_EQ(stored(history).gpu_ms, 0u);
  history.full = false;
  recorder.store_again();
  EXPECT_EQ(stored(history).gpu_ms, 5000u);
  EXPECT_FALSE(stored(history).open);
}

}  // namespace
}  // namespace gpurota::daemon
