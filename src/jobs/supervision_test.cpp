#include "jobs/supervision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::jobs {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

struct Clock {
  Moment now{TimePoint(hours(1)), WallTime(hours(1000))};
  Moment after(Duration time) {
    now.at += time;
    now.wall += std::chrono::duration_cast<std::chrono::milliseconds>(time);
    return now;
  }
};

Supervision running(Clock& clock, Policy policy) {
  Supervision job(policy);
  EXPECT_THAT(job.start(clock.now), ElementsAre(Action::kRequestLease));
  EXPECT_THAT(job.on_lease(clock.now), ElementsAre(Action::kSpawn));
  return job;
}

TEST(Supervision, SuccessfulCommandFinishesAndReleasesItsLease) {
  Clock clock;
  Supervision job = running(clock, {});
  EXPECT_THAT(job.on_exit(clock.after(seconds(5)), 0, false), ElementsAre(Action::kReleaseLease));
  EXPECT_EQ(job.state().phase, Phase::kFinished);
  ASSERT_EQ(job.state().history.size(), 1U);
  EXPECT_TRUE(job.state().history[0].is_success());
  EXPECT_EQ(job.state().history[0].ended - *job.state().history[0].started, seconds(5));
  EXPECT_FALSE(job.next_time());
}

Supervision chained(Clock& clock, Policy policy = {}) {
  Supervision job(policy);
  EXPECT_THAT(job.start(clock.now, true), IsEmpty());
  EXPECT_EQ(job.state().phase, Phase::kChained);
  return job;
}

TEST(Supervision, ChainedJobRequestsItsLeaseWhenTheJobsBeforeItEnd) {
  Clock clock;
  Supervision job = chained(clock);
  EXPECT_FALSE(job.next_time());
  EXPECT_THAT(job.start(clock.now), IsEmpty()) << "it is not started past its chain";
  EXPECT_EQ(job.state().phase, Phase::kChained);
  EXPECT_THAT(job.on_chain_met(), ElementsAre(Action::kRequestLease));
  EXPECT_EQ(job.state().phase, Phase::kWaiting);
  EXPECT_THAT(job.on_chain_met(), IsEmpty()) << "once";
}

TEST(Supervision, ChainedJobIsCancelledWithAReasonAndCanStartAgain) {
  Clock clock;
  Supervision job = chained(clock, {RestartPolicy::kAlways});
  job.on_chain_broken("prepare was cancelled");
  EXPECT_EQ(job.state().phase, Phase::kCancelled);
  EXPECT_EQ(job.state().end_detail, "prepare was cancelled");
  EXPECT_TRUE(job.state().history.empty()) << "it never ran";
  EXPECT_THAT(job.on_boot(clock.now), IsEmpty());
  EXPECT_THAT(job.start(clock.now), ElementsAre(Action::kRequestLease));
  EXPECT_EQ(job.state().end_detail, "");
}

TEST(Supervision, ChainedJobStaysChainedAfterARestart) {
  Clock clock;
  Supervision job(Policy{}, chained(clock).state());
  EXPECT_THAT(job.on_adopted(clock.now), IsEmpty());
  EXPECT_THAT(job.on_boot(clock.now), IsEmpty());
  EXPECT_EQ(job.state().phase, Phase::kChained);
}

TEST(Supervision, ChainedJobStopsWithoutARequest) {
  Clock clock;
  Supervision job = chained(clock);
  EXPECT_THAT(job.stop(clock.now, "by root"), IsEmpty());
  EXPECT_EQ(job.state().phase, Phase::kStopped);
  EXPECT_EQ(job.state().end_detail, "by root");
}

TEST(Supervision, RecordsThePeakMemoryOfEachRun) {
  Clock clock;
  Supervision job = running(clock, {RestartPolicy::kOnFailure});
  job.on_use(mib(100));
  job.on_use(mib(300));
  job.on_use(mib(200));
  EXPECT_EQ(job.state().most_used, mib(300));
  (void)job.on_exit(clock.after(seconds(1)), 3, false);
  EXPECT_FALSE(job.state().most_used) << "of the run that is on";
  (void)job.on_time(clock.after(hours(1)));
  (void)job.on_lease(clock.now);
  (void)job.on_exit(clock.after(seconds(1)), 0, false);
  ASSERT_EQ(job.state().history.size(), 2U);
  EXPECT_EQ(job.state().history[0].most_used, mib(300));
  EXPECT_FALSE(job.state().history[1].most_used) << "nobody knows";
  job.on_use(mib(100));
  EXPECT_FALSE(job.state().most_used) << "what is left of a run that is over";
}

TEST(Supervision, DoesNotRestartUnlessAskedTo) {
  Clock clock;
  Supervision job = running(clock, {});
  (void)job.on_exit(clock.after(seconds(1)), 3, false);
  EXPECT_EQ(job.state().phase, Phase::kFailed);
  EXPECT_EQ(job.state().history[0].code, 3);
}

TEST(Supervision, JobThatLeavesForABookingKeepsItsPlaceAndCountsNoFailure) {
  for (const RestartPolicy policy : {RestartPolicy::kOnFailure, RestartPolicy::kAlways}) {
    Clock clock;
    Supervision job = running(clock, {policy});
    const WallTime asked = clock.now.wall;
    EXPECT_FALSE(job.place()) << "the first time it comes last";
    job.on_held(clock.after(hours(1)));
    for (int i = 0; i < 2; ++i) {
      job.on_booking(clock.after(hours(2)), "bob began to use booking R16");
      EXPECT_THAT(job.on_exit(clock.after(seconds(1)), 15, true),
                  ElementsAre(Action::kReleaseLease, Action::kRequestLease));
      EXPECT_EQ(job.state().phase, Phase::kWaiting) << "at once";
      EXPECT_EQ(job.state().failures, 0);
      EXPECT_EQ(job.state().history.back().reason, EndReason::kBooking);
      EXPECT_EQ(job.place(), asked);
      (void)job.on_lease(clock.after(seconds(1)));
      EXPECT_EQ(job.place(), asked) << "while it asks";
    }
    (void)job.on_exit(clock.after(seconds(1)), 3, false);
    EXPECT_FALSE(job.place()) << "what ends otherwise comes last again";
  }
}

TEST(Supervision, JobThatLeavesForABookingStaysEndedUnlessItRestarts) {
  Clock clock;
  Supervision job = running(clock, {});
  job.on_booking(clock.now, "bob began to use booking R16");
  (void)job.on_exit(clock.now, 15, true);
  EXPECT_EQ(job.state().phase, Phase::kStopped) << "no failure";
  EXPECT_FALSE(job.place());
  Supervision again = running(clock, {RestartPolicy::kAlways});
  again.on_booking(clock.now, "bob began to use booking R16");
  (void)again.stop(clock.now);
  (void)again.on_exit(clock.now, 15, true);
  EXPECT_EQ(again.state().phase, Phase::kStopped);
  (void)again.start(clock.now);
  EXPECT_FALSE(again.place());
}

TEST(Supervision, RestartsOnFailureOnlyAfterAFailure) {
  Clock clock;
  Supervision job = running(clock, {RestartPolicy::kOnFailure});
  (void)job.on_exit(clock.now, 11, true);
  EXPECT_EQ(job.state().phase, Phase::kBackingOff);
  EXPECT_EQ(job.state().history[0].reason, EndReason::kSignalled);
  Supervision good = running(clock, {RestartPolicy::kOnFailure});
  (void)good.on_exit(clock.now, 0, false);
  EXPECT_EQ(good.state().phase, Phase::kFinished);
  Supervision always = running(clock, {RestartPolicy::kAlways});
  (void)always.on_exit(clock.now, 0, false);
  EXPECT_EQ(always.state().phase, Phase::kBackingOff);
}

TEST(Supervision, WaitsLongerAfterEachFailureUpToACap) {
  EXPECT_EQ(back_off(1), seconds(1));
  EXPECT_EQ(back_off(2), seconds(2));
  EXPECT_EQ(back_off(5), seconds(16));
  EXPECT_EQ(back_off(9), seconds(256));
  EXPECT_EQ(back_off(10), minutes(5));
  EXPECT_EQ(back_off(1'000'000), minutes(5));
  Clock clock;
  Supervision job = running(clock, {RestartPolicy::kOnFailure});
  for (int failure = 1; failure <= 12; ++failure) {
    (void)job.on_exit(clock.now, 1, false);
    ASSERT_EQ(*job.next_time() - clock.now.at, back_off(failure));
    EXPECT_THAT(job.on_time(clock.after(back_off(failure) - milliseconds(500))), IsEmpty());
    EXPECT_THAT(job.on_time(clock.after(seconds(1))), ElementsAre(Action::kRequestLease));
    (void)job.on_lease(clock.now);
  }
}

TEST(Supervision, BriefSuccessfulRunsAlsoBackOff) {
  Clock clock;
  Supervision job = running(clock, {RestartPolicy::kAlways});
  for (const int expected : {1, 2, 4, 8}) {
    (void)job.on_exit(clock.now, 0, false);
    EXPECT_EQ(*job.next_time() - clock.now.at, seconds(expected));
    EXPECT_EQ(job.state().failures, 0);
    (void)job.on_time(clock.after(seconds(expected)));
    (void)job.on_lease(clock.now);
  }
  (void)job.on_exit(clock.after(Supervision::kBriefRun), 0, false);
  EXPECT_EQ(*job.next_time() - clock.now.at, seconds(1));
}

TEST(Supervision, ALongRunForgivesEarlierFailures) {
  Clock clock;
  Supervision job = running(clock, {RestartPolicy::kOnFailure});
  for (int i = 0; i < 8; ++i) {
    (void)job.on_exit(clock.now, 1, false);
    (void)job.on_time(clock.after(minutes(5)));
    (void)job.on_lease(clock.now);
  }
  (void)job.on_exit(clock.after(Supervision::kGoodRun), 1, false);
  EXPECT_EQ(*job.next_time() - clock.now.at, seconds(1));
}

TEST(Supervision, StopSendsTermThenKillAndIsStored) {
  Clock clock;
  Supervision job = running(clock, {RestartPolicy::kAlways});
  EXPECT_THAT(job.stop(clock.now), ElementsAre(Action::kTerminate));
  EXPECT_THAT(job.on_time(clock.after(seconds(9))), IsEmpty());
  EXPECT_THAT(job.on_time(clock.after(seconds(1))), ElementsAre(Action::kKill));
  EXPECT_FALSE(job.next_time());
  (void)job.on_exit(clock.now, 9, true);
  EXPECT_EQ(job.state().phase, Phase::kStopped);
  EXPECT_EQ(job.state().history[0].reason, EndReason::kStopped);
  EXPECT_THAT(job.on_boot(clock.now), IsEmpty());
  EXPECT_EQ(job.state().phase, Phase::kStopped);
}

TEST(Supervision, StopWhileWaitingCancelsTheRequest) {
  Clock clock;
  Supervision job({});
  (void)job.start(clock.now);
  EXPECT_THAT(job.stop(clock.now), ElementsAre(Action::kCancelRequest));
  // The grant had already been on its way.
  EXPECT_THAT(job.on_lease(clock.now), ElementsAre(Action::kReleaseLease));
  EXPECT_EQ(job.state().phase, Phase::kStopped);
}

TEST(Supervision, StopEndsTheBackOff) {
  Clock clock;
  Supervision job = running(clock, {RestartPolicy::kAlways});
  (void)job.on_exit(clock.now, 1, false);
  EXPECT_THAT(job.stop(clock.now), IsEmpty());
  EXPECT_FALSE(job.next_time());
  EXPECT_EQ(job.state().phase, Phase::kStopped);
}

TEST(Supervision, StartWhileStoppingStartsAgain) {
  Clock clock;
  Supervision job = running(clock, {});
  (void)job.stop(clock.now);
  EXPECT_THAT(job.start(clock.now), IsEmpty());
  EXPECT_THAT(job.on_exit(clock.now, 0, false),
              ElementsAre(Action::kReleaseLease, Action::kRequestLease));
  EXPECT_EQ(job.state().phase, Phase::kWaiting);
}

TEST(Supervision, RestartNeedsNoBackOff) {
  Clock clock;
  Supervision job = running(clock, {});
  EXPECT_THAT(job.restart(clock.now), ElementsAre(Action::kTerminate));
  (void)job.on_exit(clock.now, 0, false);
  EXPECT_EQ(job.state().phase, Phase::kWaiting);
  EXPECT_EQ(job.state().history[0].reason, EndReason::kStopped);
}

TEST(Supervision, StopAfterRestartWins) {
  Clock clock;
  Supervision job = running(clock, {});
  (void)job.restart(clock.now);
  (void)job.stop(clock.now);
  (void)job.on_exit(clock.now, 0, false);
  EXPECT_EQ(job.state().phase, Phase::kStopped);
}

TEST(Supervision, TimeoutIsAFailureWithItsReason) {
  Clock clock;
  Supervision job = running(clock, {RestartPolicy::kOnFailure});
  job.on_timeout(clock.now, "longer than 1 min");
  // Processes that survive the end of the lease are killed.
  EXPECT_EQ(*job.next_time() - clock.now.at, Policy{}.grace);
  (void)job.on_exit(clock.now, 0, false);
  EXPECT_EQ(job.state().history[0].reason, EndReason::kTimeout);
  EXPECT_EQ(job.state().phase, Phase::kBackingOff);
}

TEST(Supervision, ExceedingTheLimitEndsTheRunAndKeepsTheReason) {
  Clock clock;
  Supervision job = running(clock, {});
  job.on_over_limit(clock.now, "9 GiB of 8 GiB");
  job.on_lease_lost(clock.now, "released");  // the means of the end, not its reason
  (void)job.on_exit(clock.now, 15, true);
  EXPECT_EQ(job.state().phase, Phase::kFailed);
  EXPECT_EQ(job.state().history[0].reason, EndReason::kOverLimit);
  EXPECT_EQ(job.state().history[0].detail, "9 GiB of 8 GiB");
}

TEST(Supervision, ReleasedLeaseIsNotRequestedAgain) {
  Clock clock;
  Supervision job = running(clock, {RestartPolicy::kAlways});
  job.on_lease_lost(clock.now, "released by root");
  (void)job.on_exit(clock.now, 15, true);
  EXPECT_EQ(job.state().phase, Phase::kStopped);
  EXPECT_EQ(job.state().history[0].reason, EndReason::kLeaseLost);
}

TEST(Supervision, MissingCommandIsRetriedOnlyWithARestartPolicy) {
  Clock clock;
  Supervision job = running(clock, {});
  (void)job.on_cannot_start(clock.now, "there is no ./a.out");
  EXPECT_EQ(job.state().phase, Phase::kFailed);
  EXPECT_EQ(job.state().history[0].detail, "there is no ./a.out");
  Supervision again = running(clock, {RestartPolicy::kOnFailure});
  (void)again.on_cannot_start(clock.now, "not mounted yet");
  EXPECT_EQ(again.state().phase, Phase::kBackingOff);
}

TEST(Supervision, PutOffWhileItAsksItWaitsWithoutAnEndedRun) {
  Clock clock;
  Supervision job = running(clock, {});
  EXPECT_TRUE(job.put_off());
  EXPECT_EQ(job.state().phase, Phase::kWaiting);
  EXPECT_TRUE(job.state().history.empty());
  EXPECT_FALSE(job.put_off()) << "nothing asks";
  Supervision on = running(clock, {});
  on.on_held(clock.now);
  EXPECT_FALSE(on.put_off()) << "its command runs";
  EXPECT_EQ(on.state().phase, Phase::kRunning);
  Supervision stops = running(clock, {});
  EXPECT_THAT(stops.stop(clock.now), ElementsAre(Action::kTerminate));
  EXPECT_FALSE(stops.put_off()) << "its owner has stopped it";
}

TEST(Supervision, AtBootStartsJobsThatRanOrWaited) {
  Clock clock;
  Supervision ran = running(clock, {});
  EXPECT_THAT(ran.on_boot(clock.now), ElementsAre(Action::kRequestLease));
  EXPECT_EQ(ran.state().history[0].reason, EndReason::kReboot);
  Supervision waited({});
  (void)waited.start(clock.now);
  EXPECT_THAT(waited.on_boot(clock.now), ElementsAre(Action::kRequestLease));
  Supervision backing = running(clock, {RestartPolicy::kAlways});
  (void)backing.on_exit(clock.now, 1, false);
  EXPECT_THAT(backing.on_boot(clock.now), ElementsAre(Action::kRequestLease));
}

TEST(Supervision, AtBootDoesNotStartFinishedJobs) {
  Clock clock;
  Supervision job = running(clock, {});
  (void)job.on_exit(clock.now, 0, false);
  EXPECT_THAT(job.on_boot(clock.now), IsEmpty());
  EXPECT_EQ(job.state().phase, Phase::kFinished);
}

TEST(Supervision, AtBootStoppingJobsStayStopped) {
  Clock clock;
  Supervision job = running(clock, {RestartPolicy::kAlways});
  (void)job.stop(clock.now);
  EXPECT_THAT(job.on_boot(clock.now), IsEmpty());
  EXPECT_EQ(job.state().phase, Phase::kStopped);
  Supervision again = running(clock, {});
  (void)again.restart(clock.now);
  EXPECT_THAT(again.on_boot(clock.now), ElementsAre(Action::kRequestLease));
}

TEST(Supervision, NewDaemonContinuesTheJob) {
  Clock clock;
  Supervision ran = running(clock, {});
  Supervision adopted({}, ran.state());
  EXPECT_THAT(adopted.on_adopted(clock.after(seconds(30))), IsEmpty());
  EXPECT_EQ(adopted.state().phase, Phase::kRunning);
  Supervision stopping = running(clock, {});
  (void)stopping.stop(clock.now);
  Supervision again({}, stopping.state());
  EXPECT_THAT(again.on_adopted(clock.now), ElementsAre(Action::kTerminate));
  Supervision backing = running(clock, {RestartPolicy::kAlways});
  (void)backing.on_exit(clock.now, 1, false);
  Supervision waits({RestartPolicy::kAlways}, backing.state());
  (void)waits.on_adopted(clock.now);
  EXPECT_TRUE(waits.next_time());
}

TEST(Supervision, RemovedJobIsStoppedAndStaysRemoved) {
  Clock clock;
  Supervision job = running(clock, {RestartPolicy::kAlways});
  EXPECT_THAT(job.remove(clock.now), ElementsAre(Action::kTerminate));
  (void)job.start(clock.now);
  Supervision adopted({RestartPolicy::kAlways}, job.state());
  EXPECT_TRUE(adopted.state().removed);
  EXPECT_THAT(adopted.on_adopted(clock.now), ElementsAre(Action::kTerminate));
  EXPECT_THAT(adopted.on_exit(clock.now, 0, false), ElementsAre(Action::kReleaseLease));
  EXPECT_EQ(adopted.state().phase, Phase::kStopped);
  EXPECT_THAT(adopted.start(clock.now), IsEmpty());
  EXPECT_THAT(adopted.restart(clock.now), IsEmpty());
  Supervision rebooted({RestartPolicy::kAlways}, job.state());
  EXPECT_THAT(rebooted.on_boot(clock.now), IsEmpty());
}

TEST(Supervision, StartNotedButNotMadeIsRepeated) {
  Clock clock;
  const Supervision noted = running(clock, {});
  Supervision job({}, noted.state());
  EXPECT_THAT(job.on_never_began(clock.now), ElementsAre(Action::kRequestLease));
  EXPECT_THAT(job.state().history, IsEmpty());
  // The run that was to be stopped has ended.
  Supervision stopped = running(clock, {});
  (void)stopped.stop(clock.now);
  EXPECT_THAT(stopped.on_never_began(clock.now), ElementsAre(Action::kReleaseLease));
  EXPECT_EQ(stopped.state().phase, Phase::kStopped);
}

TEST(Supervision, UnseenEndIsAFailureOfUnknownReason) {
  Clock clock;
  Supervision job = running(clock, {});
  (void)job.on_exit_unseen(clock.now);
  EXPECT_EQ(job.state().history[0].reason, EndReason::kUnknown);
  EXPECT_EQ(job.state().phase, Phase::kFailed);
}

TEST(Supervision, RunCountsAsAskingUntilItsCommandStarts) {
  Clock clock;
  Supervision job = running(clock, {RestartPolicy::kAlways});
  EXPECT_TRUE(job.state().asking);
  job.on_held(clock.now);
  EXPECT_FALSE(job.state().asking);
  (void)job.on_exit(clock.now, 1, false);
  EXPECT_FALSE(job.state().asking) << "nor does one that backs off";
}

TEST(Supervision, TimeInTheQueueIsNotRunTime) {
  Clock clock;
  Supervision job = running(clock, {RestartPolicy::kOnFailure});
  (void)job.on_exit(clock.now, 1, false);
  (void)job.on_time(clock.after(minutes(5)));
  (void)job.on_lease(clock.now);
  job.on_held(clock.after(Supervision::kGoodRun));
  EXPECT_EQ(job.state().started, clock.now.wall);
  (void)job.on_exit(clock.after(seconds(1)), 1, false);
  EXPECT_EQ(job.state().failures, 2);
}

TEST(Supervision, KeepsABoundedHistory) {
  Clock clock;
  Supervision job = running(clock, {RestartPolicy::kAlways});
  for (int i = 0; i < 100; ++i) {
    (void)job.on_exit(clock.now, i, false);
    (void)job.on_time(clock.after(minutes(5)));
    (void)job.on_lease(clock.now);
  }
  EXPECT_EQ(job.state().history.size(), Supervision::kMaxHistory);
  EXPECT_EQ(job.state().history.back().code, 99);
}

TEST(Supervision, UserWhoStopsAnothersJobIsRecorded) {
  Clock clock;
  const std::string root = "by root (administrator): \"new fan\"";
  Supervision job = running(clock, {RestartPolicy::kAlways});
  (void)job.stop(clock.now, root);
  EXPECT_EQ(job.state().end_detail, root);
  (void)job.on_exit(clock.now, 0, false);
  EXPECT_EQ(job.state().phase, Phase::kStopped);
  EXPECT_EQ(job.state().history.back().detail, root);
  EXPECT_EQ(job.state().end_detail, root);
  // Stopping a stopped job does not change who has stopped it.
  (void)job.stop(clock.now, "by nobody");
  EXPECT_EQ(job.state().end_detail, root);
  (void)job.start(clock.now);
  EXPECT_EQ(job.state().end_detail, "");
  (void)job.stop(clock.now, root);
  EXPECT_EQ(job.state().end_detail, root) << "one that waits has no run that could say so";
}

TEST(Supervision, UserWhoRestartsAnothersJobIsRecorded) {
  Clock clock;
  Supervision job = running(clock, {RestartPolicy::kNo});
  (void)job.restart(clock.now, "by root (administrator)");
  (void)job.on_exit(clock.now, 0, false);
  EXPECT_EQ(job.state().history.back().detail, "to be restarted by root (administrator)");
}

}  // namespace
}  // namespace gpurota::jobs
