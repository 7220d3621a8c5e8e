#include "sched/cost.h"

#include <gtest/gtest.h>

namespace gpurota::sched {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const Settings kSettings;

TEST(MoveCostTest, OneColdSwitchDoesNotDominateTheEstimate) {
  MoveCost cost;
  const Duration before = cost.estimate(gib(24));
  cost.measure(gib(24), seconds(5));
  EXPECT_GT(cost.estimate(gib(24)), before);
  EXPECT_LT(cost.estimate(gib(24)), 3 * before);
}

TEST(MoveCostTest, SlowBusIsDetectedSoon) {
  MoveCost cost;
  for (int i = 0; i < 12; ++i) cost.measure(gib(24), seconds(6));
  EXPECT_GT(cost.estimate(gib(24)), milliseconds(5500));
  EXPECT_LE(cost.estimate(gib(24)), seconds(6));
}

TEST(PausesTest, ALeaseWithoutPausesIsWaitedForAsLongAsMovingTakes) {
  EXPECT_EQ(Pauses().before_release(seconds(2), kSettings), seconds(2));
  EXPECT_EQ(Pauses().before_release(milliseconds(1), kSettings), kSettings.idle_release);
}

TEST(PausesTest, LongPausesEndTheTurnAtOnce) {
  Pauses pauses;
  pauses.add(seconds(9));
  EXPECT_EQ(pauses.before_release(seconds(2), kSettings), kSettings.idle_release);
  EXPECT_EQ(pauses.before_release(seconds(30), kSettings), seconds(30))
      << "for such a move it is short";
}

TEST(PausesTest, ShortPausesAreWaitedOutAndLongOnesEndTheTurn) {
  Pauses pauses;
  for (int i = 0; i < 5; ++i) {
    pauses.add(seconds(9));
    for (int k = 0; k < 1000; ++k) pauses.add(milliseconds(30));
  }
  const Duration idle = pauses.before_release(seconds(2), kSettings);
  EXPECT_GT(idle, milliseconds(30));
  EXPECT_LE(idle, milliseconds(80));
}

TEST(PausesTest, ShortPausesKeepTheTurn) {
  Pauses pauses;
  pauses.add(seconds(20));
  for (int i = 0; i < 100; ++i) pauses.add(milliseconds(500));
  EXPECT_GT(pauses.before_release(seconds(1), kSettings), milliseconds(500));
}

TEST(PausesTest, RecentPausesWeighMoreThanOldOnes) {
  Pauses pauses;
  for (int i = 0; i < 100; ++i) pauses.add(seconds(9));
  for (int i = 0; i < 10; ++i) pauses.add(seconds(1));
  EXPECT_GT(pauses.before_release(seconds(2), kSettings), seconds(1));
}

}  // namespace
}  // namespace gpurota::sched
