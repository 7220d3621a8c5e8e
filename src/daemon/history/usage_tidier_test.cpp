#include "daemon/history/usage_tidier.h"

#include "daemon/history/usage_sums.h"
#include "store/sqlite_store.h"
#include "testing/fake_event_loop.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;
using ports::StoredUsage;
using ports::UsageBy;

constexpr uid_t kMallory = 1000, kAlice = 1001;

class UsageTidierTest : public ::testing::Test {
 protected:
  UsageTidierTest() { config.max_usage_rows_per_user = 200; }
  // Adds a lease of a minute on two GPUs, with a note of its own.
  void add_lease(uid_t uid, WallTime since) {
    ports::HistoryBatch batch;
    ++last_lease;
    for (const char* gpu : {"GPU-1", "GPU-2"}) {
      StoredUsage row;
      row.lease = LeaseId{last_lease};
      row.gpu = GpuUuid{gpu};
      row.uid = uid;
      row.kind = "run";
      row.note = std::to_string(last_lease);
      row.since = since;
      row.until = since + 1min;
      row.gpu_ms = 60000;
      row.mib_ms = 1000;
      batch.usage.push_back(row);
    }
    ASSERT_TRUE(history->save(batch));
    tidier.on_row(uid);
    tidier.on_row(uid);
  }
  std::size_t rows(uid_t uid) { return *history->count_usage(uid); }
  std::string sums(UsageBy by) {
    UsageSums sums({by, WallTime(0h), WallTime(1000h)}, [](uid_t) { return true; });
    sums.add(*history->read_usage({}, SIZE_MAX));
    std::string text;
    for (const auto& [key, sum] : sums.sums()) {
      text += std::to_string(key.first) + " " + key.second.value_or("-") + " " +
              std::to_string(sum.leases) + " " + std::to_string(std::llround(sum.gpu_ms)) + " " +
              std::to_string(std::llround(sum.mib_ms)) + "\n";
    }
    return text;
  }

  testing::FakeEventLoop loop;
  config::Config config;
  std::unique_ptr<store::SqliteStore> history = std::move(*store::SqliteStore::open_in_memory());
  std::uint64_t last_lease = 0;
  std::vector<LeaseId> readers;
  UsageTidier tidier{{loop, *history, config, [this] { return readers; }}};
};

TEST_F(UsageTidierTest, AUserOfManyLeasesHasFewRowsAndTheRightSums) {
  for (int i = 0; i < 1000; ++i) add_lease(kMallory, WallTime(1h + i * 7min));
  for (int i = 0; i < 50; ++i) add_lease(kAlice, WallTime(1h + i * 7min));
  const std::vector<UsageBy> all = {UsageBy::kUser, UsageBy::kGpu, UsageBy::kKind, UsageBy::kNote};
  std::vector<std::string> before, after;
  for (const UsageBy by : all) before.push_back(sums(by));
  loop.advance(10min);
  for (const UsageBy by : all) after.push_back(sums(by));
  EXPECT_TRUE(tidier.is_idle());
  EXPECT_LE(rows(kMallory), 200u);
  EXPECT_EQ(rows(kAlice), 100u) << "others keep theirs";
  EXPECT_EQ(before, after);
}

TEST_F(UsageTidierTest, TheNewestRowsAreLeftAsTheyAre) {
  for (int i = 0; i < 150; ++i) add_lease(kMallory, WallTime(1h + i * 2min));
  loop.advance(10min);
  const auto left = *history->read_usage(LeaseId{120}, SIZE_MAX);
  EXPECT_EQ(left.size(), 60u);
  for (const StoredUsage& row : left) EXPECT_EQ(row.merged, 0u);
}

TEST_F(UsageTidierTest, AReportThatIsBeingMadeMeanwhileCountsEachLeaseOnce) {
  for (int i = 0; i < 1000; ++i) add_lease(kMallory, WallTime(1h + i * 7min));
  const std::string before = sums(UsageBy::kUser);
  UsageSums report({UsageBy::kUser, WallTime(0h), WallTime(1000h)}, [](uid_t) { return true; });
  readers = {LeaseId{}};
  for (;;) {
    const auto piece = *history->read_usage(readers[0], 20);
    if (piece.empty()) break;
    report.add(piece);
    readers[0] = piece.back().lease;
    loop.advance(20ms);
  }
  const UsageSums::Sum& sum = report.sums().at({kMallory, ""});
  EXPECT_EQ(sum.leases, 1000u);
  EXPECT_EQ(std::llround(sum.gpu_ms), 2000 * 60000);
  EXPECT_LT(rows(kMallory), 2000u) << "merging went on beside it";
  EXPECT_EQ(sums(UsageBy::kUser), before);
}

TEST_F(UsageTidierTest, OldRowsAreRemovedInPieces) {
  for (int i = 0; i < 90; ++i) add_lease(kAlice, WallTime(1h + i * 1min));
  tidier.forget(WallTime(100h));
  loop.advance(10ms);
  EXPECT_GT(rows(kAlice), 0u);
  EXPECT_LT(rows(kAlice), 180u);
  loop.advance(1min);
  EXPECT_EQ(rows(kAlice), 0u);
}

}  // namespace
}  // namespace gpurota::daemon
