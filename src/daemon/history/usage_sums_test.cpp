#include "daemon/history/usage_sums.h"

#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;
using ports::StoredUsage;
using ports::UsageBy;

constexpr uid_t kAlice = 1000, kBob = 1001;

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

std::map<UsageSums::Key, UsageSums::Sum> sums_of(const std::vector<StoredUsage>& rows, UsageBy by,
                                                 WallTime since = WallTime(0h),
                                                 WallTime until = WallTime(9h)) {
  UsageSums sums({by, since, until}, [](uid_t uid) { return uid == kBob; });
  for (const StoredUsage& row : rows) sums.add({row});
  return sums.sums();
}

TEST(UsageSums, RowsPartlyWithinTheTimeCountByTheirPart) {
  const auto sums = sums_of({a_usage(1, kAlice, WallTime(1h), WallTime(5h)),
                             a_usage(2, kAlice, WallTime(20h), WallTime(21h)),
                             a_usage(3, kBob, WallTime(2h), WallTime(3h))},
                            UsageBy::kUser, WallTime(3h), WallTime(4h));
  ASSERT_EQ(sums.size(), 2u);
  const UsageSums::Sum &alice = sums.at({kAlice, ""}), &bob = sums.at({kBob, ""});
  EXPECT_EQ(alice.leases, 1u);
  EXPECT_EQ(alice.gpu_ms, 3600000);
  EXPECT_EQ(alice.mib_ms, 3600000000);
  EXPECT_EQ(bob.leases, 1u);
  EXPECT_EQ(bob.gpu_ms, 0);
}

TEST(UsageSums, ALeaseCountsOnceHoweverManyGpusItHasAndAlsoIfItTookNoTime) {
  StoredUsage second = a_usage(1, kAlice, WallTime(1h), WallTime(1h));
  second.gpu.value = "GPU-2";
  second.gpu_ms = 7;
  const std::vector<StoredUsage> rows = {a_usage(1, kAlice, WallTime(1h), WallTime(1h)), second};
  const auto sums = sums_of(rows, UsageBy::kUser);
  EXPECT_EQ(sums.at({kAlice, ""}).leases, 1u);
  EXPECT_EQ(sums.at({kAlice, ""}).gpu_ms, 7);
  EXPECT_EQ(sums_of(rows, UsageBy::kGpu).size(), 2u);
}

TEST(UsageSums, EachSumIsTakenOnce) {
  UsageSums sums({UsageBy::kUser, WallTime(0h), WallTime(9h)}, [](uid_t) { return false; });
  sums.add({a_usage(1, kAlice, WallTime(1h), WallTime(2h)),
            a_usage(2, kBob, WallTime(1h), WallTime(2h))});
  EXPECT_EQ(sums.take()->first.first, kAlice);
  EXPECT_EQ(sums.take()->first.first, kBob);
  EXPECT_FALSE(sums.take());
}

TEST(UsageSums, SumsAreMadeByEachKey) {
  StoredUsage other = a_usage(2, kAlice, WallTime(1h), WallTime(2h));
  other.note = "m";
  other.kind = "job";
  other.gpu = GpuUuid{"GPU-2"};
  other.group = "staff";
  const std::vector<StoredUsage> rows = {a_usage(1, kAlice, WallTime(1h), WallTime(2h)), other};
  EXPECT_EQ(sums_of(rows, UsageBy::kUser).size(), 1u);
  for (const UsageBy by : {UsageBy::kGroup, UsageBy::kNote, UsageBy::kGpu, UsageBy::kKind}) {
    EXPECT_EQ(sums_of(rows, by).size(), 2u);
  }
}

TEST(UsageSums, HiddenNotesAreOneSumWithoutAKey) {
  StoredUsage other = a_usage(2, kBob, WallTime(1h), WallTime(2h));
  other.note = "m";
  const auto sums = sums_of({a_usage(1, kBob, WallTime(1h), WallTime(2h)), other}, UsageBy::kNote);
  ASSERT_EQ(sums.size(), 1u);
  EXPECT_EQ(sums.begin()->first, UsageSums::Key(kBob, std::nullopt));
  EXPECT_EQ(sums.begin()->second.leases, 2u);
}

}  // namespace
}  // namespace gpurota::daemon
