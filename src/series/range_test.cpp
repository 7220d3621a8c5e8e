#include "series/range.h"

#include <gtest/gtest.h>

namespace gpurota::series {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

const GpuUuid kGpu{"GPU-1"};
const WallTime kNow(hours(480000) + minutes(7));

TEST(Range, TakesTheFinestRingThatReachesBackWithTheRequestedPoints) {
  const Plan recent = plan(kNow - minutes(15), kNow, kNow, 1000);
  EXPECT_EQ(recent.ring, 0u);
  EXPECT_EQ(recent.step(), seconds(1));
  EXPECT_EQ(plan(kNow - hours(1), kNow, kNow, 1000).step(), seconds(10));
  EXPECT_EQ(plan(kNow - hours(24), kNow, kNow, 10000).step(), seconds(10));
  EXPECT_EQ(plan(kNow - hours(25), kNow, kNow, 10000).step(), minutes(5));
  for (const std::size_t most : {2, 10, 600}) {
    for (const auto span : {hours(1), hours(20), hours(24 * 90), hours(24 * 9000)}) {
      const Plan some = plan(kNow - span, kNow, kNow, most);
      const std::int64_t points = (some.end - 1) / some.group - some.first / some.group + 1;
      EXPECT_LE(points, static_cast<std::int64_t>(most));
      EXPECT_GE(points * 3, static_cast<std::int64_t>(std::min<std::size_t>(most, 100)));
    }
  }
}

// "since 15 minutes ago" is a little more than that when the daemon reads it.
TEST(Range, DelayedQueryGetsTheSameSteps) {
  const auto late = std::chrono::milliseconds(300);
  EXPECT_EQ(plan(kNow - minutes(15) - late, kNow, kNow, 1000).step(), seconds(1));
  EXPECT_EQ(plan(kNow - hours(24) - late, kNow, kNow, 10000).step(), seconds(10));
  EXPECT_EQ(plan(kNow - minutes(15) - seconds(10), kNow, kNow, 1000).step(), seconds(10));
}

TEST(Range, FutureOrEmptyRangeIsEmpty) {
  const Plan later = plan(kNow + hours(1), kNow + hours(2), kNow, 100);
  EXPECT_EQ(later.first, later.end);
  Rings rings;
  RangeReader reader(rings, later, {});
  EXPECT_FALSE(reader.go_on(1000));
}

TEST(Range, MergesStepsToPointsAPieceAtATime) {
  Rings rings;
  const WallTime start = kNow - seconds(100);
  for (int i = 0; i < 100; ++i) {
    if (i >= 40 && i < 60) continue;
    Entry entry;
    entry.subject = subject_of(kGpu);
    entry.values[kLoad] = entry.values[kMaxLoad] = static_cast<std::uint64_t>(i * 10);
    rings.add(start + seconds(i), {entry, {.subject = subject_of(LeaseId{1})}});
  }
  const Plan ten{0, step_of(start, seconds(1)), step_of(kNow, seconds(1)), 10};
  RangeReader reader(rings, ten, {subject_of(kGpu)});
  while (reader.go_on(7)) {
  }
  const auto& points = reader.points(subject_of(kGpu));
  ASSERT_EQ(points.size(), 8u);  // two have nothing
  EXPECT_EQ(points[0].begins, start);
  EXPECT_EQ(points[0].entry.values[kLoad], 45u);
  EXPECT_EQ(points[0].entry.values[kMaxLoad], 90u);
  EXPECT_EQ(points[4].begins, start + seconds(60));
  EXPECT_TRUE(reader.points(subject_of(LeaseId{1})).empty());
}

}  // namespace
}  // namespace gpurota::series
