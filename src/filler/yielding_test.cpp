#include "filler/yielding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::filler {
namespace {

using namespace std::chrono_literals;
using Step = Eviction::Step;
using testing::HasSubstr;
using testing::IsEmpty;

Yielding movable(Why why = Why::kWanted) { return {OnYield::kEvict, why, true, true}; }

TEST(WayOut, FillerIsEndedByDefault) {
  Yielding yielding = movable();
  yielding.wish = OnYield::kStop;
  EXPECT_EQ(way_out(yielding).how, OnYield::kStop);
  EXPECT_THAT(way_out(yielding).because, IsEmpty());
}

TEST(WayOut, MovableFillerKeepsItsState) {
  for (const Why why : {Why::kWanted, Why::kLeased, Why::kForeign, Why::kPaused}) {
    EXPECT_EQ(way_out(movable(why)).how, OnYield::kEvict) << to_string(why);
  }
}

TEST(WayOut, RemovedFillerOrOneOnAGpuOutOfServiceEnds) {
  EXPECT_EQ(way_out(movable(Why::kRemoved)).how, OnYield::kStop);
  EXPECT_EQ(way_out(movable(Why::kOutOfService)).how, OnYield::kStop);
}

TEST(WayOut, FillerWhoseTimeIsOverEnds) {
  EXPECT_EQ(way_out(movable(Why::kStayOver)).how, OnYield::kStop);
}

TEST(WayOut, UnmovableFillerIsEndedWithTheReason) {
  Yielding full = movable();
  full.host_has_room = false;
  EXPECT_EQ(way_out(full).how, OnYield::kStop);
  EXPECT_THAT(way_out(full).because, HasSubstr("host memory"));
  Yielding early = movable();
  early.can_be_moved = false;
  EXPECT_EQ(way_out(early).how, OnYield::kStop);
  EXPECT_THAT(way_out(early).because, HasSubstr("not started"));
}

class EvictionTest : public testing::Test {
 protected:
  Step observe() { return eviction.observe(sight, now); }
  void drained(Bytes left) {
    sight.drained = true;
    sight.left = left;
  }
  void seen(Bytes counted) {
    sight.counted = counted;
    sight.taken = now;
  }

  TimePoint now{1000s};
  Eviction eviction{{2s, 5s, 1s}, now};
  Eviction::Sight sight{false, false, false, gib(70), mib(600), std::nullopt, {}};
};

TEST_F(EvictionTest, AnEvictionIsDoneWhenALaterSampleShowsNothingLeft) {
  EXPECT_EQ(observe(), Step::kGoing);
  drained(gib(70));
  EXPECT_EQ(observe(), Step::kGoing);
  seen(gib(70));
  now += 1s;
  drained({});
  EXPECT_EQ(observe(), Step::kGoing) << "the sample began before";
  EXPECT_TRUE(eviction.wants_sample());
  now += 10ms;
  seen(mib(610));
  EXPECT_EQ(observe(), Step::kOut);
  EXPECT_EQ(eviction.stays(), mib(610));
}

TEST_F(EvictionTest, EvictionFailsIfWorkOutlastsTheGrace) {
  EXPECT_EQ(observe(), Step::kGoing);
  EXPECT_EQ(eviction.next(), now + 2s);
  now += 2s;
  EXPECT_EQ(observe(), Step::kFailed);
  EXPECT_EQ(eviction.problem(), "its work did not end within 2 s");
}

TEST_F(EvictionTest, MovingMayTakeLongWhileItMakesProgress) {
  drained(gib(70));
  for (std::uint64_t left = 70; left > 60; --left) {
    drained(gib(left));
    EXPECT_EQ(observe(), Step::kGoing);
    now += 4s;
  }
  EXPECT_EQ(observe(), Step::kGoing);
  now += 2s;
  EXPECT_EQ(observe(), Step::kFailed);
  EXPECT_THAT(eviction.problem(), HasSubstr("host memory"));
}

TEST_F(EvictionTest, FillerThatCannotAnswerFailsAfterItsGrace) {
  drained(gib(70));
  sight.silent = true;
  EXPECT_EQ(observe(), Step::kGoing);
  EXPECT_EQ(eviction.next(), now + 2s);
  now += 2s;
  EXPECT_EQ(observe(), Step::kFailed);
  EXPECT_THAT(eviction.problem(), HasSubstr("does not answer"));
}

TEST_F(EvictionTest, SlowDriverIsWaitedForBriefly) {
  drained({});
  EXPECT_EQ(observe(), Step::kGoing);
  now += 10ms;
  seen(gib(30));
  EXPECT_EQ(observe(), Step::kGoing) << "the driver still counts it";
  now += 1s;
  seen(gib(8));
  EXPECT_EQ(observe(), Step::kOut);
  EXPECT_EQ(eviction.stays(), gib(8))
      << "what it counts is what stays: others are placed beside that";
}

TEST_F(EvictionTest, FailingDriverDoesNotBlockTheEviction) {
  drained({});
  EXPECT_EQ(observe(), Step::kGoing);
  now += 1s;
  EXPECT_EQ(observe(), Step::kGoing);
  EXPECT_GT(eviction.next(), now);
  now = eviction.next();
  EXPECT_EQ(observe(), Step::kOut);
  EXPECT_EQ(eviction.stays(), mib(600));
}

TEST_F(EvictionTest, NewDaemonCountsNoTimeUntilItGivesOrders) {
  sight.on_hold = true;
  EXPECT_EQ(observe(), Step::kGoing);
  now += 3s;
  EXPECT_EQ(observe(), Step::kGoing);
  sight.on_hold = false;
  now += 1s;
  EXPECT_EQ(observe(), Step::kGoing);
}

}  // namespace
}  // namespace gpurota::filler
