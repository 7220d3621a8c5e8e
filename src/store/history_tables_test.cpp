#include "store/sqlite_store.h"
#include "testing/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::store {
namespace {

using namespace std::chrono_literals;
using ports::StoredEvent;
using ports::StoredUsage;

std::unique_ptr<SqliteStore> a_store() {
  auto store = SqliteStore::open_in_memory();
  EXPECT_TRUE(store);
  return std::move(*store);
}

StoredEvent an_event(std::uint64_t id) {
  StoredEvent event;
  event.id = id;
  event.time = WallTime(1h);
  event.type = "finding_begun";
  event.lease = LeaseId{3};
  event.gpu_index = 1;
  event.gpu = GpuUuid{"GPU-1"};
  event.uid = 4294967294u;
  event.finding = "foreign_use";
  event.bytes = gib(3);
  event.count = 7;
  event.message = "m";
  event.pids = {12, 34};
  event.detail = std::string("\xff\0\x1b", 3);
  return event;
}

StoredUsage a_usage(std::uint64_t lease, uid_t uid, WallTime since, WallTime until) {
  StoredUsage usage;
  usage.lease = LeaseId{lease};
  usage.gpu = GpuUuid{"GPU-1"};
  usage.uid = uid;
  usage.group = "students";
  usage.kind = "run";
  usage.note = "n";
  usage.since = since;
  usage.until = until;
  usage.gpu_ms = static_cast<std::uint64_t>((until - since).count());
  usage.mib_ms = 1000 * usage.gpu_ms;
  return usage;
}

TEST(History, AnEventComesBackExactlyAndInOrder) {
  const auto store = a_store();
  StoredEvent bare;
  bare.id = 1;
  bare.type = "daemon_started";
  ASSERT_TRUE(store->save({{an_event(9), bare}, {}, {}}));
  const auto events = store->load_events();
  ASSERT_TRUE(events);
  EXPECT_THAT(*events, ::testing::ElementsAre(bare, an_event(9)));
}

TEST(History, RemovesExpiredRows) {
  const auto store = a_store();
  ASSERT_TRUE(store->save({{an_event(1), an_event(2)}, {}, {}}));
  ASSERT_TRUE(store->save({{}, {1}, {}}));
  EXPECT_THAT(*store->load_events(), ::testing::ElementsAre(an_event(2)));
}

TEST(History, PastBookingIsReplacedAndRemovedByItsId) {
  const auto store = a_store();
  ports::StoredPastBooking booking{RequestId{4}, LeaseId{9},   4294967294u,
                                   WallTime(1h), WallTime(2h), 250000};
  ports::HistoryBatch batch;
  batch.bookings = {booking, {RequestId{5}, LeaseId{10}, 1000, WallTime(3h), WallTime(4h), 1}};
  ASSERT_TRUE(store->save(batch));
  booking.until = WallTime(90min);
  batch.bookings = {booking};
  batch.forgotten_bookings = {RequestId{5}};
  ASSERT_TRUE(store->save(batch));
  const auto read = store->load_past_bookings();
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, std::vector{booking});
}

TEST(History, UsageIsReplacedNotAdded) {
  const auto store = a_store();
  StoredUsage usage = a_usage(1, 1000, WallTime(1h), WallTime(2h));
  usage.open = true;
  ASSERT_TRUE(store->save({{}, {}, {usage}}));
  EXPECT_THAT(*store->load_open_usage(), ::testing::ElementsAre(usage));
  usage.until = WallTime(3h);
  usage.gpu_ms *= 2;
  usage.open = false;
  ASSERT_TRUE(store->save({{}, {}, {usage}}));
  EXPECT_TRUE(store->load_open_usage()->empty());
  EXPECT_THAT(*store->read_usage({}, 9), ::testing::ElementsAre(usage));
}

TEST(History, SumsUseOfAUserByKindWithinTheTime) {
  const auto store = a_store();
  StoredUsage job = a_usage(2, 1000, WallTime(2h), WallTime(3h));
  job.kind = "job";
  ASSERT_TRUE(store->save({{},
                           {},
                           {a_usage(1, 1000, WallTime(1h), WallTime(5h)), job,
                            a_usage(3, 1001, WallTime(3h), WallTime(4h)),
                            a_usage(4, 1000, WallTime(20h), WallTime(21h))}}));
  const auto sums = store->sum_usage_of(1000, WallTime(3h), WallTime(4h));
  ASSERT_TRUE(sums);
  const ports::UsageSum jobs{1000, "job", 1, 0, 0}, runs{1000, "run", 1, 3600000, 3600000000};
  EXPECT_THAT(*sums, ::testing::UnorderedElementsAre(jobs, runs));
}

TEST(History, UsageIsReadInPiecesOfWholeLeases) {
  const auto store = a_store();
  ports::HistoryBatch batch;
  for (std::uint64_t lease = 1; lease <= 50; ++lease) {
    for (const char* gpu : {"GPU-1", "GPU-2", "GPU-3"}) {
      batch.usage.push_back(a_usage(lease, 1000, WallTime(1h), WallTime(2h)));
      batch.usage.back().gpu.value = gpu;
    }
  }
  ASSERT_TRUE(store->save(batch));
  std::vector<StoredUsage> all;
  for (;;) {
    const auto piece = store->read_usage(all.empty() ? LeaseId{} : all.back().lease, 10);
    ASSERT_TRUE(piece);
    if (piece->empty()) break;
    EXPECT_EQ(piece->size() % 3, 0u);
    EXPECT_LE(piece->size(), 12u);
    all.insert(all.end(), piece->begin(), piece->end());
  }
  EXPECT_EQ(all, batch.usage);
}

TEST(History, MergedRowsReplaceTheirSources) {
  const auto store = a_store();
  StoredUsage running = a_usage(3, 1000, WallTime(1h), WallTime(1h));
  running.open = true;
  const StoredUsage other = a_usage(4, 1001, WallTime(1h), WallTime(1h));
  ASSERT_TRUE(store->save({{},
                           {},
                           {a_usage(1, 1000, WallTime(1h), WallTime(1h + 1min)),
                            a_usage(2, 1000, WallTime(1h), WallTime(1h + 2min)), running, other}}));
  const auto done = store->merge_usage({1000, 1h, {}, 9, {}});
  ASSERT_TRUE(done);
  EXPECT_EQ(done->fewer, 1u);
  EXPECT_TRUE(done->over);
  EXPECT_EQ(store->count_usage(1000), std::size_t{2});
  StoredUsage merged = a_usage(1, 1000, WallTime(1h), WallTime(1h + 2min));
  merged.gpu_ms = 180000;
  merged.mib_ms = 180000000;
  merged.merged = merged.merged_first = 2;
  EXPECT_THAT(*store->read_usage({}, 9), ::testing::ElementsAre(merged, running, other));
  EXPECT_EQ(store->sum_usage_of(1000, WallTime(0h), WallTime(9h))->at(0).leases, 3u);
}

TEST(History, OldUsageIsPrunedButNotThatOfRunningLeases) {
  const auto store = a_store();
  StoredUsage running = a_usage(2, 1000, WallTime(1h), WallTime(2h));
  running.open = true;
  ASSERT_TRUE(store->save({{}, {}, {a_usage(1, 1000, WallTime(1h), WallTime(2h)), running}}));
  EXPECT_EQ(store->prune_usage(WallTime(3h), 1), true);
  EXPECT_EQ(store->prune_usage(WallTime(3h), 1), false);
  EXPECT_THAT(*store->read_usage({}, 9), ::testing::ElementsAre(running));
  EXPECT_EQ(store->load_open_usage()->size(), 1u);
}

}  // namespace
}  // namespace gpurota::store
