#include "filler/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::filler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const GpuUuid kA{"GPU-a"}, kB{"GPU-b"}, kC{"GPU-c"};

std::vector<FreeGpu> idle(std::vector<GpuUuid> gpus, Duration time = std::chrono::minutes(1)) {
  std::vector<FreeGpu> free;
  for (GpuUuid& gpu : gpus) free.push_back({std::move(gpu), time});
  return free;
}

TEST(Choice, PutsOneFillerOnEachIdleGpuByDefault) {
  EXPECT_THAT(choose({{"fold", {}, {}, 0, true}}, idle({kA, kB})),
              ElementsAre(Placement{0, kA}, Placement{0, kB}));
}

TEST(Choice, SharesIdleGpusAmongFillers) {
  EXPECT_THAT(choose({{"fold", {}, {}, 1, true}, {"seti", {}, {}, 0, true}}, idle({kA, kB, kC})),
              ElementsAre(Placement{1, kA}, Placement{0, kB}, Placement{1, kC}));
}

TEST(Choice, RespectsInstancesAndGpus) {
  EXPECT_THAT(choose({{"one", {}, 1, 0, true}}, idle({kA, kB})), ElementsAre(Placement{0, kA}));
  EXPECT_THAT(choose({{"one", {}, 1, 1, true}}, idle({kA, kB})), IsEmpty());
  EXPECT_THAT(choose({{"b", {kB}, {}, 0, true}}, idle({kA, kB})), ElementsAre(Placement{0, kB}));
}

TEST(Choice, SkipsFillersThatMayNotStart) {
  EXPECT_THAT(choose({{"paused", {}, {}, 0, false}}, idle({kA})), IsEmpty());
}

TEST(Choice, LeavesAGpuAloneUntilItHasBeenIdleForLongEnough) {
  const Candidate patient{"patient", {}, {}, 0, true, std::chrono::minutes(5)};
  EXPECT_THAT(choose({patient}, idle({kA})), IsEmpty());
  EXPECT_THAT(choose({patient, {"hasty", {}, {}, 7, true}}, idle({kA})),
              ElementsAre(Placement{1, kA}));
  EXPECT_THAT(choose({patient}, idle({kA}, std::chrono::minutes(5))),
              ElementsAre(Placement{0, kA}));
}

Candidate of(uid_t user, const char* name, int running = 0, int started_at = -1) {
  Candidate candidate{name, {}, {}, running, true, {}, user};
  if (started_at >= 0) candidate.last_start = TimePoint(std::chrono::minutes(started_at));
  return candidate;
}

const FreeGpu kFree{kA, std::chrono::minutes(1)};

TEST(Choice, SharesIdleGpusAmongUsersFirst) {
  // One user's second filler comes after the other user's first.
  EXPECT_THAT(choose({of(1, "a"), of(1, "b"), of(2, "c")}, idle({kA, kB, kC})),
              ElementsAre(Placement{0, kA}, Placement{2, kB}, Placement{1, kC}));
}

TEST(Choice, PrefersTheFillerThatStartedLongestAgo) {
  EXPECT_THAT(choose({of(1, "a", 0, 20), of(1, "b", 0, 10)}, {kFree}),
              ElementsAre(Placement{1, kA}));
  EXPECT_THAT(choose({of(1, "a", 0, 20), of(1, "new")}, {kFree}), ElementsAre(Placement{1, kA}));
  // The other filler of user 1 ran lately; the filler of user 2 did not.
  EXPECT_THAT(choose({of(1, "a", 0, 5), of(1, "b", 0, 30), of(2, "c", 0, 20)}, {kFree}),
              ElementsAre(Placement{2, kA}));
}

TEST(Choice, RunningFillerLeavesOnlyForABetterClaim) {
  EXPECT_TRUE(makes_way({of(1, "on", 1, 0), of(2, "waits")}, 0, kFree));
  EXPECT_TRUE(makes_way({of(1, "on", 1, 10), of(1, "before", 0, 5)}, 0, kFree));
  EXPECT_FALSE(makes_way({of(1, "alone", 1, 0)}, 0, kFree));
  // User 2 has a GPU already, and this is the only GPU of user 1.
  EXPECT_FALSE(makes_way({of(1, "on", 1, 0), of(2, "second"), of(2, "first", 1, 0)}, 0, kFree));
  EXPECT_TRUE(makes_way({of(1, "on", 2, 0), of(2, "waits")}, 0, kFree));
}

TEST(Choice, RunningFillerLeavesOnlyForAFillerThatCanStartThere) {
  Candidate waits = of(2, "waits");
  waits.may_start = false;
  EXPECT_FALSE(makes_way({of(1, "on", 1, 0), waits}, 0, kFree));
  waits.may_start = true;
  waits.gpus = {kB};
  EXPECT_FALSE(makes_way({of(1, "on", 1, 0), waits}, 0, kFree));
  waits.gpus.clear();
  waits.idle_after = std::chrono::hours(1);
  EXPECT_FALSE(makes_way({of(1, "on", 1, 0), waits}, 0, kFree));
}

TEST(Choice, PausedFillerLeavesForAnyOther) {
  Candidate paused = of(1, "paused", 1, 0);
  paused.may_start = false;
  EXPECT_TRUE(makes_way({paused, of(2, "was on since", 0, 50)}, 0, kFree));
}

TEST(Choice, FailedFillerIsPassedOverForALongerButBoundedTime) {
  using std::chrono::hours;
  using std::chrono::minutes;
  EXPECT_EQ(passed_over_for(1, hours(1)), hours(1));
  EXPECT_EQ(passed_over_for(2, hours(1)), hours(2));
  EXPECT_EQ(passed_over_for(3, hours(1)), hours(4));
  EXPECT_EQ(passed_over_for(1'000'000, hours(1)), hours(24));
  EXPECT_EQ(passed_over_for(1, std::chrono::seconds(2)), minutes(10));
  EXPECT_EQ(passed_over_for(9, hours(48)), hours(48));
}

// Like the daemon, this asks each time that a filler has been on for long enough.
TEST(Choice, FillersOnOneGpuTakeTurnsWithEqualTimeByUser) {
  std::vector<Candidate> fillers = {of(1, "a"), of(1, "b"), of(2, "c"), of(2, "d"), of(3, "e")};
  std::vector<int> hours(fillers.size());
  std::optional<std::size_t> on;
  for (int hour = 0; hour < 120; ++hour) {
    if (on && makes_way(fillers, *on, kFree)) {
      fillers[*on].running = 0;
      on.reset();
    }
    if (!on) {
      on = choose(fillers, {kFree}).front().candidate;
      fillers[*on].running = 1;
      fillers[*on].last_start = TimePoint(std::chrono::hours(hour));
    }
    ++hours[*on];
  }
  EXPECT_THAT(hours, ElementsAre(20, 20, 20, 20, 40));
}

TEST(Choice, SpareGpuGoesToUsersInTurn) {
  // Two users, three GPUs: each has one, and they take turns on the third.
  std::vector<Candidate> fillers = {of(1, "a"), of(2, "b")};
  const std::vector<GpuUuid> gpus = {kA, kB, kC};
  std::vector<std::optional<std::size_t>> on(gpus.size());
  std::vector<int> hours(fillers.size());
  for (int hour = 0; hour < 120; ++hour) {
    for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
      const FreeGpu free{gpus[gpu], std::chrono::minutes(1)};
      if (on[gpu] && makes_way(fillers, *on[gpu], free)) {
        --fillers[*on[gpu]].running;
        on[gpu].reset();
      }
      if (!on[gpu]) {
        on[gpu] = choose(fillers, {free}).front().candidate;
        ++fillers[*on[gpu]].running;
        fillers[*on[gpu]].last_start =
            TimePoint(std::chrono::hours(hour)) + std::chrono::seconds(gpu);
      }
      ++hours[*on[gpu]];
    }
  }
  EXPECT_NEAR(hours[0], hours[1], 2);
}

}  // namespace
}  // namespace gpurota::filler
