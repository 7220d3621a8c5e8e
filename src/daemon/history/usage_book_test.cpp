#include "daemon/history/usage_book.h"

#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;

const GpuUuid kGpu{"GPU-0"};

class UsageBookTest : public ::testing::Test {
 protected:
  UsageBookTest() {
    lease.id = LeaseId{1};
    lease.uid = 1000;
    lease.note = "n";
    lease.since = now.wall;
    lease.gpus = {{kGpu, gib(6), std::nullopt}};
    GpuInfo info;
    info.uuid = kGpu;
    info.memory = gib(24);
    gpus = {info};
  }
  void pass(std::chrono::milliseconds time) {
    now.mono += time;
    now.wall += time;
  }

  UsageBook book;
  Lease lease;
  std::vector<GpuInfo> gpus;
  Now now{TimePoint(1h), WallTime(1000h)};
};

TEST_F(UsageBookTest, SliceCountsAsAFractionAndMemoryAsUsed) {
  book.update(lease, "staff", gpus, now);
  pass(10min);
  book.on_use(lease.id, kGpu, gib(2), now);
  pass(30min);
  book.on_use(lease.id, kGpu, Bytes(), now);
  pass(20min);
  book.close(lease.id, now);
  const auto usage = book.take(now);
  ASSERT_EQ(usage.size(), 1u);
  EXPECT_EQ(usage[0].gpu_ms, 900000u);  // a quarter of the GPU for an hour
  EXPECT_EQ(usage[0].mib_ms, 2048u * 1800000u);
  EXPECT_EQ(usage[0].until - usage[0].since, 1h);
  EXPECT_EQ(usage[0].group, "staff");
  EXPECT_FALSE(usage[0].open);
  EXPECT_TRUE(book.take(now).empty());
}

TEST_F(UsageBookTest, AWholeGpuCountsWhole) {
  lease.gpus[0].limit.reset();
  book.update(lease, "", gpus, now);
  pass(1h);
  EXPECT_EQ(book.take(now).at(0).gpu_ms, 3600000u);
}

TEST_F(UsageBookTest, AChangedLimitCountsFromThenOn) {
  book.update(lease, "", gpus, now);
  pass(1h);
  lease.gpus[0].limit = gib(12);
  book.update(lease, "", gpus, now);
  pass(1h);
  EXPECT_EQ(book.take(now).at(0).gpu_ms, 900000u + 1800000u);
}

TEST_F(UsageBookTest, RestartCountsTheTimeWithoutADaemon) {
  book.update(lease, "", gpus, now);
  pass(1h);
  const ports::StoredUsage stored = book.take(now).at(0);
  EXPECT_TRUE(stored.open);
  pass(1h);
  UsageBook next;
  next.resume(stored, lease, gpus, now);
  pass(2h);
  const auto usage = next.take(now);
  EXPECT_EQ(usage.at(0).gpu_ms, 4 * 900000u);
  EXPECT_EQ(usage.at(0).since, stored.since);
}

TEST_F(UsageBookTest, UnwrittenUseCountsFromTheLeasesBeginning) {
  pass(2h);
  book.update(lease, "", gpus, now);
  EXPECT_EQ(book.take(now).at(0).gpu_ms, 2 * 900000u);
}

TEST_F(UsageBookTest, LeaseOnAnUnseenGpuCountsOnceTheGpuIsSeen) {
  book.update(lease, "", {}, now);
  pass(1h);
  EXPECT_EQ(book.take(now).at(0).gpu_ms, 0u);
  pass(1h);
  book.update(lease, "", gpus, now);
  EXPECT_EQ(book.take(now).at(0).gpu_ms, 2 * 900000u);
}

TEST_F(UsageBookTest, AClockThatIsSetBackTakesNothingAway) {
  book.update(lease, "", gpus, now);
  pass(1h);
  const auto until = book.take(now).at(0).until;
  now.wall -= 24h;
  now.mono += 1h;
  const auto usage = book.take(now);
  EXPECT_EQ(usage.at(0).until, until);
  EXPECT_EQ(usage.at(0).gpu_ms, 1800000u);
}

}  // namespace
}  // namespace gpurota::daemon
