#include "store/sqlite_store.h"
#include "testing/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::store {
namespace {

using namespace std::chrono_literals;
using ports::StoredEvent;
using ports::StoredUsage;
using ports::UsageBy;

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

TEST(History, ForgetsWhatIsToBeForgotten) {
  const auto store = a_store();
  ASSERT_TRUE(store->save({{an_event(1), an_event(2)}, {}, {}}));
  ASSERT_TRUE(store->save({{}, {1}, {}}));
  EXPECT_THAT(*store->load_events(), ::testing::ElementsAre(an_event(2)));
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
  const auto sums = store->sum_usage(UsageBy::kUser, WallTime(0h), WallTime(9h));
  ASSERT_EQ(sums->size(), 1u);
  EXPECT_EQ(sums->at(0).gpu_ms, 7200000u);
  EXPECT_EQ(sums->at(0).leases, 1u);
}

TEST(History, WhatReachesIntoTheTimeIsCountedByItsPart) {
  const auto store = a_store();
  ASSERT_TRUE(store->save({{},
                           {},
                           {a_usage(1, 1000, WallTime(1h), WallTime(5h)),
                            a_usage(2, 1000, WallTime(20h), WallTime(21h)),
                            a_usage(3, 1001, WallTime(2h), WallTime(3h))}}));
  const auto sums = store->sum_usage(UsageBy::kUser, WallTime(3h), WallTime(4h));
  ASSERT_TRUE(sums);
  ASSERT_EQ(sums->size(), 2u);
  EXPECT_EQ(sums->at(0).uid, 1000u);
  EXPECT_EQ(sums->at(0).gpu_ms, 3600000u);
  EXPECT_EQ(sums->at(0).mib_ms, 3600000000u);
  EXPECT_EQ(sums->at(1).gpu_ms, 0u);
}

TEST(History, IsSummedByEachKey) {
  const auto store = a_store();
  StoredUsage other = a_usage(2, 1000, WallTime(1h), WallTime(2h));
  other.note = "m";
  other.kind = "job";
  other.gpu = GpuUuid{"GPU-2"};
  other.group = "staff";
  ASSERT_TRUE(store->save({{}, {}, {a_usage(1, 1000, WallTime(1h), WallTime(2h)), other}}));
  const auto count = [&](UsageBy by) {
    return store->sum_usage(by, WallTime(0h), WallTime(9h))->size();
  };
  EXPECT_EQ(count(UsageBy::kUser), 1u);
  for (const UsageBy by : {UsageBy::kGroup, UsageBy::kNote, UsageBy::kGpu, UsageBy::kKind}) {
    EXPECT_EQ(count(by), 2u);
  }
}

TEST(History, OldUsageIsPrunedButNeverWhatGoesOn) {
  const auto store = a_store();
  StoredUsage running = a_usage(2, 1000, WallTime(1h), WallTime(2h));
  running.open = true;
  ASSERT_TRUE(store->save({{}, {}, {a_usage(1, 1000, WallTime(1h), WallTime(2h)), running}}));
  ASSERT_TRUE(store->prune_usage(WallTime(3h)));
  EXPECT_EQ(store->sum_usage(UsageBy::kUser, WallTime(0h), WallTime(9h))->at(0).leases, 1u);
  EXPECT_EQ(store->load_open_usage()->size(), 1u);
}

}  // namespace
}  // namespace gpurota::store
