#include "filler/turn_taking.h"

#include <gtest/gtest.h>

#include <random>

namespace gpurota::filler {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Sight kNobodyThere{};

Sight foreign() {
  Sight sight;
  sight.foreign = true;
  return sight;
}

// One GPU with a filler that starts and leaves when it should, as the daemon would do it.
struct Gpu {
  explicit Gpu(Rules rules = {}) : turns(rules) {}

  // Samples every 25 ms for this long.
  void pass(Duration time, const Sight& sight) {
    for (const TimePoint end = now + time; now < end; now += kSampleEvery) observe(sight);
  }
  bool observe(const Sight& sight) {
    const bool leaves = turns.observe(sight, now);
    if (leaves) {
      ++yields;
      turns.on_gone(now, true);
    } else if (turns.state() == State::kFree) {
      ++starts;
      turns.on_started(now);
    }
    return leaves;
  }

  TurnTaking turns;
  TimePoint now{seconds(1000)};
  int starts = 0, yields = 0;
};

TEST(TurnTaking, AFillerStartsWhenNobodyHasBeenThereForTheIdleTime) {
  Gpu gpu;
  gpu.pass(milliseconds(29'900), kNobodyThere);
  EXPECT_EQ(gpu.starts, 0);
  gpu.pass(milliseconds(200), kNobodyThere);
  EXPECT_EQ(gpu.starts, 1);
  EXPECT_EQ(gpu.turns.state(), State::kOn);
}

TEST(TurnTaking, IdleTimeCountsFromTheLastUse) {
  Gpu gpu;
  gpu.pass(seconds(20), kNobodyThere);
  gpu.observe(foreign());
  gpu.pass(seconds(29), kNobodyThere);
  EXPECT_EQ(gpu.starts, 0);
  gpu.pass(seconds(2), kNobodyThere);
  EXPECT_EQ(gpu.starts, 1);
}

TEST(TurnTaking, FillerLeavesAtTheFirstUseByOthers) {
  for (const int who : {0, 1, 2, 3}) {
    Gpu gpu;
    gpu.pass(seconds(31), kNobodyThere);
    ASSERT_EQ(gpu.turns.state(), State::kOn);
    Sight sight;
    sight.foreign = who == 0;
    sight.wanted = who == 1;
    sight.leased = who == 2;
    sight.in_service = who != 3;
    EXPECT_TRUE(gpu.observe(sight)) << who;
  }
}

TEST(TurnTaking, FillerIsAskedToLeaveOnce) {
  TurnTaking turns({});
  TimePoint now{seconds(1)};
  (void)turns.observe(kNobodyThere, now);
  (void)turns.observe(kNobodyThere, now + seconds(30));
  turns.on_started(now + seconds(30));
  EXPECT_TRUE(turns.observe(foreign(), now + seconds(40)));
  EXPECT_FALSE(turns.observe(foreign(), now + seconds(41)));
  // The filler is still leaving, although the other process has ended.
  EXPECT_FALSE(turns.observe(kNobodyThere, now + seconds(42)));
  EXPECT_EQ(turns.state(), State::kLeaving);
  EXPECT_EQ(turns.why(), Why::kForeign);
}

TEST(TurnTaking, TheLoadOfAFillerDoesNotMakeItLeave) {
  Gpu gpu;
  gpu.pass(seconds(31), kNobodyThere);
  Sight busy;
  busy.load_percent = 100;
  gpu.pass(minutes(1), busy);
  EXPECT_EQ(gpu.yields, 0);
}

TEST(TurnTaking, HiddenMemoryDelaysAFillerButDoesNotEndIt) {
  Sight hidden;
  hidden.hidden = true;
  Gpu gpu;
  gpu.pass(minutes(2), hidden);
  EXPECT_EQ(gpu.starts, 0);
  EXPECT_EQ(gpu.turns.why(), Why::kHidden);
  gpu.pass(minutes(1), kNobodyThere);
  EXPECT_EQ(gpu.starts, 1);
  gpu.pass(minutes(2), hidden);
  EXPECT_EQ(gpu.yields, 0);
  // The last process's memory is not freed yet.
  gpu.observe(foreign());
  gpu.pass(seconds(20), kNobodyThere);
  gpu.pass(seconds(5), hidden);
  EXPECT_EQ(gpu.starts, 1);
  gpu.pass(seconds(6), kNobodyThere);
  EXPECT_EQ(gpu.starts, 2);
}

TEST(TurnTaking, LoadWithoutAProcessKeepsAFillerOff) {
  Gpu gpu;
  Sight load;
  load.load_percent = 10;
  gpu.pass(minutes(2), load);
  EXPECT_EQ(gpu.starts, 0);
  EXPECT_EQ(gpu.turns.why(), Why::kLoad);
}

TEST(TurnTaking, FillerDoesNotFlapWithRecurringForeignProcesses) {
  Gpu gpu;
  gpu.pass(seconds(31), kNobodyThere);
  ASSERT_EQ(gpu.starts, 1);
  for (int second = 0; second < 60; ++second) {
    gpu.pass(seconds(1), second % 2 == 0 ? foreign() : kNobodyThere);
  }
  EXPECT_EQ(gpu.starts, 1);
  EXPECT_EQ(gpu.yields, 1);
  gpu.pass(seconds(61), kNobodyThere);
  EXPECT_EQ(gpu.starts, 2);
}

TEST(TurnTaking, FillerDoesNotFlapWithAShortIdleTime) {
  Rules rules;
  rules.idle_after = milliseconds(200);
  Gpu gpu(rules);
  gpu.pass(seconds(1), kNobodyThere);
  ASSERT_EQ(gpu.starts, 1);
  for (int second = 0; second < 60; ++second) {
    gpu.pass(milliseconds(500), foreign());
    gpu.pass(milliseconds(500), kNobodyThere);
  }
  // Each rest is twice the last: 0.2, 0.4, 0.8, … seconds.
  EXPECT_LE(gpu.starts, 10);
  EXPECT_EQ(gpu.starts - gpu.yields, gpu.turns.state() == State::kOn ? 1 : 0);
}

TEST(TurnTaking, FillerDoesNotFlapWithRecurringLeases) {
  Rules rules;
  rules.idle_after = milliseconds(200);
  Gpu gpu(rules);
  Sight wanted;
  wanted.wanted = true;
  for (int second = 0; second < 60; ++second) {
    gpu.pass(milliseconds(500), wanted);
    gpu.pass(milliseconds(500), kNobodyThere);
  }
  EXPECT_LE(gpu.starts, 10);
}

TEST(TurnTaking, LongStayResetsTheRestTime) {
  Gpu gpu;
  for (int i = 0; i < 5; ++i) {
    gpu.pass(minutes(16), kNobodyThere);
    gpu.observe(foreign());
  }
  const int before = gpu.starts;
  gpu.pass(seconds(31), kNobodyThere);
  EXPECT_EQ(gpu.starts, before + 1);
}

TEST(TurnTaking, RepeatedlyFailingFillerBlocksOthersForTheIdleTimeOnly) {
  TurnTaking turns{Rules{}};
  TimePoint now{seconds(1000)};
  (void)turns.observe(kNobodyThere, now);
  for (int i = 0; i < 10; ++i) {
    now = *turns.start_at();
    (void)turns.observe(kNobodyThere, now);
    ASSERT_EQ(turns.state(), State::kFree);
    turns.on_started(now);
    turns.on_gone(now, false);
    EXPECT_EQ(*turns.start_at() - now, Rules{}.idle_after);
  }
}

TEST(TurnTaking, DismissedFillerLeavesOnceWithoutAShortStay) {
  Gpu gpu;
  EXPECT_FALSE(gpu.turns.dismiss(Why::kPaused)) << "there is none";
  gpu.pass(seconds(31), kNobodyThere);
  EXPECT_TRUE(gpu.turns.dismiss(Why::kPaused));
  EXPECT_EQ(gpu.turns.why(), Why::kPaused);
  EXPECT_FALSE(gpu.turns.dismiss(Why::kPaused));
  gpu.turns.on_gone(gpu.now, true);
  gpu.pass(seconds(31), kNobodyThere);
  EXPECT_EQ(gpu.starts, 2);
}

TEST(TurnTaking, NextFillerStartsWithoutIdleTimeAfterAStay) {
  Gpu gpu;
  gpu.pass(seconds(31), kNobodyThere);
  EXPECT_TRUE(gpu.turns.dismiss(Why::kStayOver));
  gpu.pass(seconds(5), kNobodyThere);
  EXPECT_EQ(gpu.turns.state(), State::kLeaving);
  gpu.turns.on_gone(gpu.now, true);
  gpu.pass(milliseconds(50), kNobodyThere);
  EXPECT_EQ(gpu.starts, 2);
  // But the idle time starts again if somebody came meanwhile.
  EXPECT_TRUE(gpu.turns.dismiss(Why::kStayOver));
  gpu.observe(foreign());
  gpu.turns.on_gone(gpu.now, true);
  gpu.pass(seconds(29), kNobodyThere);
  EXPECT_EQ(gpu.starts, 2);
}

const Sight kLoad = [] {
  Sight sight;
  sight.load_percent = 100;
  return sight;
}();

// A filler has run, and has left for another. False: the filler did not leave.
bool stay_is_over(Gpu& gpu) {
  gpu.pass(seconds(31), kNobodyThere);
  if (!gpu.turns.dismiss(Why::kStayOver)) return false;
  gpu.turns.on_gone(gpu.now, true);
  return true;
}

TEST(TurnTaking, LingeringLoadDoesNotRestartTheIdleTime) {
  Gpu gpu;
  ASSERT_TRUE(stay_is_over(gpu));
  // The sample that shows that the filler has gone still reports its load.
  gpu.pass(seconds(1), kLoad);
  EXPECT_EQ(gpu.starts, 1);
  EXPECT_EQ(gpu.turns.why(), Why::kLoad);
  EXPECT_GT(gpu.turns.idle_for(gpu.now), seconds(30));
  gpu.pass(milliseconds(50), kNobodyThere);
  EXPECT_EQ(gpu.starts, 2);
}

TEST(TurnTaking, LoadAfterAFillerHasEndedIsForeign) {
  Gpu gpu;
  ASSERT_TRUE(stay_is_over(gpu));
  gpu.pass(kLoadLingers + milliseconds(50), kLoad);
  gpu.pass(seconds(29), kNobodyThere);
  EXPECT_EQ(gpu.starts, 1);
  gpu.pass(seconds(2), kNobodyThere);
  EXPECT_EQ(gpu.starts, 2);
}

TEST(TurnTaking, FillerOfAnEarlierDaemonIsOn) {
  Gpu gpu;
  gpu.turns.on_found(gpu.now);
  EXPECT_EQ(gpu.turns.state(), State::kOn);
  EXPECT_TRUE(gpu.observe(foreign()));
  gpu.pass(seconds(31), kNobodyThere);
  EXPECT_EQ(gpu.starts, 1);
}

TEST(TurnTaking, ReportsTheIdleTime) {
  Gpu gpu;
  EXPECT_EQ(gpu.turns.idle_for(gpu.now), Duration(0));
  gpu.observe(kNobodyThere);
  gpu.now += seconds(7);
  EXPECT_EQ(gpu.turns.idle_for(gpu.now), seconds(7));
  gpu.observe(foreign());
  EXPECT_EQ(gpu.turns.idle_for(gpu.now), Duration(0));
}

TEST(TurnTaking, ReportsWhenAFillerMayStart) {
  Gpu gpu;
  const TimePoint first = gpu.now;
  gpu.observe(kNobodyThere);
  EXPECT_EQ(gpu.turns.start_at(), first + seconds(30));
  gpu.observe(foreign());
  EXPECT_FALSE(gpu.turns.start_at());
}

TEST(TurnTaking, MovedOutFillerRestsLikeAnEndedOne) {
  for (const bool moved : {false, true}) {
    TurnTaking turns{Rules{}};
    TimePoint now{seconds(1000)};
    for (const int rest : {30, 60, 120}) {
      (void)turns.observe(kNobodyThere, now);
      now = *turns.start_at();
      (void)turns.observe(kNobodyThere, now);
      ASSERT_EQ(turns.state(), State::kFree);
      turns.on_started(now);
      ASSERT_TRUE(turns.observe(foreign(), now));
      moved ? turns.on_moved_out(now) : turns.on_gone(now, true);
      EXPECT_EQ(turns.state(), State::kResting);
      (void)turns.observe(kNobodyThere, now);
      EXPECT_EQ(*turns.start_at() - now, seconds(rest));
    }
  }
}

TEST(TurnTaking, FillerThatEndsWhileMovedOutDoesNotRestLonger) {
  TurnTaking turns{Rules{}};
  TimePoint now{seconds(1000)};
  (void)turns.observe(kNobodyThere, now);
  now += seconds(30);
  (void)turns.observe(kNobodyThere, now);
  turns.on_started(now);
  (void)turns.observe(foreign(), now);
  turns.on_moved_out(now);
  (void)turns.observe(kNobodyThere, now);
  const auto start = turns.start_at();
  turns.on_gone(now + seconds(5), false);
  EXPECT_EQ(turns.start_at(), start);
}

// Shows random states of the GPU. A filler must never be on while anybody else is there, must be on
// in the end when nobody is, and must not start more often than its rests allow.
TEST(TurnTaking, RulesHoldForRandomStatesOfTheGpu) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    Rules rules;
    rules.idle_after = milliseconds(100 + random() % 5'000);
    Gpu gpu(rules);
    Sight sight;
    std::optional<TimePoint> last_somebody;
    for (int i = 0; i < 3'000; ++i) {
      if (random() % 20 == 0) {
        sight = {};
        sight.foreign = random() % 3 == 0;
        sight.wanted = random() % 5 == 0;
        sight.leased = random() % 5 == 0;
        sight.in_service = random() % 9 != 0;
      }
      const bool somebody = sight.foreign || sight.wanted || sight.leased || !sight.in_service;
      const int starts = gpu.starts;
      gpu.observe(sight);
      ASSERT_FALSE(somebody && gpu.turns.state() == State::kOn) << "seed " << seed;
      if (somebody) last_somebody = gpu.now;
      if (gpu.starts > starts && last_somebody) {
        ASSERT_GE(gpu.now - *last_somebody, rules.idle_after) << "seed " << seed;
      }
      gpu.now += milliseconds(random() % 50);
    }
    gpu.pass(minutes(16), kNobodyThere);
    ASSERT_EQ(gpu.turns.state(), State::kOn) << "seed " << seed;
  }
}

}  // namespace
}  // namespace gpurota::filler
