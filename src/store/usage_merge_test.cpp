#include "store/usage_merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::store {
namespace {

using namespace std::chrono_literals;
using ports::StoredUsage;
using ::testing::SizeIs;

StoredUsage a_usage(std::uint64_t lease, WallTime since, const char* gpu = "GPU-1") {
  StoredUsage usage;
  usage.lease = LeaseId{lease};
  usage.gpu = GpuUuid{gpu};
  usage.kind = "run";
  usage.note = "n";
  usage.since = since;
  usage.until = since + 1min;
  usage.gpu_ms = 60000;
  usage.mib_ms = 7;
  return usage;
}

TEST(UsageMerge, LeasesOfAnHourBecomeOneRowForEachGpuAndAreStillCounted) {
  const auto merged = merge_usage(
      {a_usage(1, WallTime(1h)), a_usage(1, WallTime(1h), "GPU-2"), a_usage(2, WallTime(1h + 5min)),
       a_usage(3, WallTime(1h + 7min), "GPU-2"), a_usage(4, WallTime(2h))},
      1h, {});
  ASSERT_THAT(merged, SizeIs(3));
  EXPECT_EQ(merged[0].gpu, GpuUuid{"GPU-1"});
  EXPECT_EQ(merged[0].since, WallTime(1h));
  EXPECT_EQ(merged[0].until, WallTime(1h + 6min));
  EXPECT_EQ(merged[0].gpu_ms, 120000u);
  EXPECT_EQ(merged[0].mib_ms, 14u);
  EXPECT_EQ(merged[0].merged, 2u);
  EXPECT_EQ(merged[0].merged_first, 2u);
  EXPECT_EQ(merged[0].note, "n");
  EXPECT_EQ(merged[1].merged, 2u) << "two leases had the second GPU";
  EXPECT_EQ(merged[1].merged_first, 1u) << "and the first row counts one of them";
  EXPECT_EQ(merged[2].lease, LeaseId{4});
}

TEST(UsageMerge, MergedRowsAreMergedAgain) {
  const auto hours = merge_usage({a_usage(1, WallTime(1h)), a_usage(2, WallTime(1h)),
                                  a_usage(3, WallTime(2h)), a_usage(4, WallTime(2h))},
                                 1h, {});
  ASSERT_THAT(hours, SizeIs(2));
  const auto days = merge_usage(hours, 24h, {});
  ASSERT_THAT(days, SizeIs(1));
  EXPECT_EQ(days[0].merged, 4u);
  EXPECT_EQ(days[0].merged_first, 4u);
  EXPECT_EQ(days[0].gpu_ms, 240000u);
}

TEST(UsageMerge, KeepsKindsGroupsAndSpansApartAndDropsDifferingNotes) {
  StoredUsage job = a_usage(2, WallTime(1h)), staff = a_usage(3, WallTime(1h)),
              other = a_usage(4, WallTime(1h)), over = a_usage(5, WallTime(1h + 59min + 30s));
  job.kind = "job";
  staff.group = "staff";
  other.note = "m";
  const auto merged = merge_usage({a_usage(1, WallTime(1h)), job, staff, other, over}, 1h, {});
  ASSERT_THAT(merged, SizeIs(4));
  EXPECT_EQ(merged[0].note, "");
  EXPECT_EQ(merged[3], over) << "it is of two hours";
}

TEST(UsageMerge, ReadRowsAreNotMergedWithUnreadOnes) {
  const auto merged = merge_usage({a_usage(1, WallTime(1h)), a_usage(2, WallTime(1h)),
                                   a_usage(3, WallTime(1h)), a_usage(4, WallTime(1h))},
                                  1h, {LeaseId{2}});
  ASSERT_THAT(merged, SizeIs(2));
  EXPECT_EQ(merged[0].merged, 2u);
  EXPECT_EQ(merged[0].lease, LeaseId{1});
  EXPECT_EQ(merged[1].lease, LeaseId{3});
}

}  // namespace
}  // namespace gpurota::store
