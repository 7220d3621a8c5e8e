#include "watch/watcher.h"

#include "watch/classify.h"
#include "watch/watcher_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace gpurota::watch {
namespace {

using ::testing::IsEmpty;

TEST_F(WatcherTest, UseWithoutALeaseIsFoundAtTheFirstReadingWithItsOwner) {
  reading.processes = {process(10, kBob, gib(3)), process(11, kBob, mib(10))};
  const auto steps = see();
  ASSERT_EQ(steps.size(), 1u);
  const Finding& found = steps[0].finding;
  EXPECT_EQ(steps[0].what, Step::What::kBegun);
  EXPECT_EQ(found.kind, FindingKind::kUnreservedUse);
  EXPECT_EQ(found.uid, kBob);
  EXPECT_EQ(found.used, gib(3) + mib(10));
  EXPECT_EQ(found.processes.size(), 2u);
  EXPECT_EQ(found.since, now);
}

SeenLease filler(LeaseId id, uid_t uid) {
  SeenLease lease = exclusive(id, uid);
  lease.filler = true;
  return lease;
}

TEST_F(WatcherTest, AFillerIsWithinItsLeaseAndNeverUnused) {
  reading.leases = {filler(kLease, kAlice)};
  reading.processes = {process(10, kAlice, gib(70), kLease)};
  EXPECT_THAT(see(), IsEmpty());
  reading.processes.clear();
  policy.unused_after = 1min;
  policy.unused_grace = 1min;
  action = Action::kStop;
  EXPECT_THAT(see_until(5min), IsEmpty());
}

// The filler leaves for the process, so the process is not in the wrong place.
TEST_F(WatcherTest, AProcessBesideAFillerIsNotForeignUseNotEvenItsUsers) {
  reading.leases = {filler(kLease, kAlice)};
  reading.processes = {process(10, kAlice, gib(70), kLease), process(11, kAlice, gib(3))};
  const auto steps = see();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].finding.kind, FindingKind::kUnreservedUse);
  EXPECT_EQ(steps[0].finding.processes.size(), 1u);
}

TEST_F(WatcherTest, AFindingIsReportedOnceHoweverLongItLasts) {
  reading.processes = {process(10, kBob, gib(3))};
  EXPECT_EQ(see_until(1min).size(), 1u);
  reading.processes.clear();
  const auto steps = see_until(1min);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].what, Step::What::kEnded);
  EXPECT_THAT(watcher.open(), IsEmpty());
}

TEST_F(WatcherTest, AFindingThatTheLastReadingLacksIsHiddenThoughItHasNotEnded) {
  reading.processes = {process(10, kBob, gib(3))};
  (void)see();
  ASSERT_EQ(watcher.seen().size(), 1u);
  const auto processes = std::exchange(reading.processes, {});
  EXPECT_THAT(see(), IsEmpty());
  EXPECT_EQ(watcher.open().size(), 1u);
  EXPECT_THAT(watcher.seen(), IsEmpty());
  reading.processes = processes;
  EXPECT_THAT(see(), IsEmpty()) << "it is the same finding";
  EXPECT_EQ(watcher.seen().size(), 1u);
}

TEST_F(WatcherTest, UseAroundTheThresholdIsOneFinding) {
  std::size_t steps = 0;
  for (int i = 0; i < 200; ++i) {
    reading.processes = {process(10, kBob, i % 2 == 0 ? mib(1030) : mib(1000))};
    steps += see().size();
  }
  EXPECT_EQ(steps, 1u);
}

TEST_F(WatcherTest, AProgramThatIsRestartedAtOnceIsOneFinding) {
  std::size_t steps = 0;
  for (int i = 0; i < 40; ++i) {
    reading.processes = {process(10 + i, kBob, gib(2))};
    steps += see().size();
    reading.processes.clear();
    steps += see().size();
  }
  EXPECT_EQ(steps, 1u);
}

TEST_F(WatcherTest, BelowTheThresholdNothingIsFoundUnlessAnyProcessCounts) {
  reading.processes = {process(10, kBob, mib(500))};
  EXPECT_THAT(see(), IsEmpty());
  policy.threshold = Bytes();
  EXPECT_EQ(see().size(), 1u);
}

TEST_F(WatcherTest, UsersWhoExceedTheThresholdTogetherAreAllNamed) {
  reading.processes = {process(10, kAlice, mib(700)), process(11, kBob, mib(700))};
  EXPECT_EQ(see().size(), 2u);
}

TEST_F(WatcherTest, SmallUserBesideALargeOneIsNoFinding) {
  reading.processes = {process(10, kAlice, mib(3)), process(11, kBob, gib(7))};
  const auto steps = see();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].finding.uid, kBob);
}

// canhazgpu's mistake: it showed bob's process on alice's GPU as alice's own use, as if checked.
TEST_F(WatcherTest, ProcessOnALeasedGpuIsForeignWhateverItsSize) {
  reading.leases = {exclusive(kLease, kAlice)};
  reading.processes = {process(10, kAlice, gib(8), kLease), process(11, kBob, mib(300))};
  const auto steps = see();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].finding.kind, FindingKind::kForeignUse);
  EXPECT_EQ(steps[0].finding.uid, kBob);
  EXPECT_EQ(steps[0].finding.lease, kLease);
}

TEST_F(WatcherTest, LeaseOfAnotherGpuDoesNotCoverTheProcess) {
  reading.leases = {exclusive(kLease, kAlice)};
  reading.processes = {process(11, kBob, gib(2), LeaseId{7})};
  ASSERT_EQ(see().size(), 1u);
  EXPECT_EQ(watcher.open()[0].kind, FindingKind::kForeignUse);
}

TEST_F(WatcherTest, WholeGpuMayBeUsedByAllProcessesOfItsUser) {
  reading.leases = {exclusive(kLease, kAlice)};
  reading.processes = {process(10, kAlice, gib(8))};
  EXPECT_THAT(see(), IsEmpty());
}

TEST_F(WatcherTest, ProcessBesideItsUsersSliceIsUnreserved) {
  reading.leases = {slice(kLease, kAlice, gib(8))};
  reading.processes = {process(10, kAlice, gib(2))};
  ASSERT_EQ(see().size(), 1u);
  EXPECT_EQ(watcher.open()[0].kind, FindingKind::kUnreservedUse);
}

TEST_F(WatcherTest, AReservationCoversAllProcessesOfItsUser) {
  reading.leases = {slice(kLease, kAlice, gib(8))};
  reading.leases[0].takes_all_of_user = true;
  reading.processes = {process(10, kAlice, gib(2))};
  EXPECT_THAT(see(), IsEmpty());
}

TEST_F(WatcherTest, GraphicsAndTheIgnoreListAreNeitherForeignNorUnreserved) {
  reading.leases = {exclusive(kLease, kAlice)};
  SeenProcess desktop = process(10, 0, gib(2));
  desktop.graphics = true;
  SeenProcess listed = process(11, 0, gib(2));
  listed.executable = "/usr/bin/dcgm";
  SeenProcess pretender = listed;
  pretender.pid = 12;
  pretender.uid = kBob;
  policy.ignored = {{0, "/usr/bin/dcgm"}};
  reading.processes = {desktop, listed};
  EXPECT_THAT(see(), IsEmpty());
  reading.processes.push_back(pretender);
  ASSERT_EQ(see().size(), 1u);
  EXPECT_EQ(watcher.open()[0].uid, kBob);
}

TEST_F(WatcherTest, AnEmptyIgnoreEntryIgnoresNothing) {
  policy.ignored = {{std::nullopt, ""}};
  reading.processes = {process(10, kBob, gib(2))};
  EXPECT_EQ(see().size(), 1u);
}

TEST_F(WatcherTest, AProcessThatEndsBetweenTwoReadingsIsNoFinding) {
  SeenProcess dead = process(10, std::nullopt, gib(4));
  dead.gone = true;
  dead.start_ticks = 0;
  reading.processes = {dead};
  EXPECT_THAT(see_until(4s), IsEmpty());
  reading.processes.clear();
  EXPECT_THAT(see_until(4s), IsEmpty());
}

TEST_F(WatcherTest, AProcessThatCannotBeSeenIsFoundAfterAWhileAndNeverStopped) {
  action = Action::kStop;
  SeenProcess hidden = process(10, std::nullopt, gib(4));
  hidden.gone = true;
  hidden.start_ticks = 0;
  reading.processes = {hidden};
  const auto steps = see_until(1min);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_FALSE(steps[0].finding.uid);
}

TEST_F(WatcherTest, HiddenMemoryIsReportedWithoutAnOwnerOnceItCountsAsUse) {
  reading.hidden = {.is_known = true, .bytes = gib(20), .is_leaving = true};
  EXPECT_TRUE(see().empty());
  reading.hidden = {.is_known = true, .bytes = gib(20), .in_use = true};
  reading.leases = {slice(kLease, kAlice, gib(8))};
  const auto steps = see();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_FALSE(steps[0].finding.uid);
  EXPECT_TRUE(steps[0].finding.processes.empty());
  EXPECT_EQ(steps[0].finding.used, gib(20));
}

TEST_F(WatcherTest, WithoutFiguresForProcessesTheRestOfTheGpuIsTheirs) {
  SeenProcess unknown = process(10, kBob, Bytes());
  unknown.used.reset();
  reading.processes = {unknown};
  reading.used = gib(6);
  const auto steps = watcher.decide(reading, policy, now);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].finding.uid, kBob);
}

TEST_F(WatcherTest, ContainerOfADockerRunIsReported) {
  reading.leases = {exclusive(kLease, kAlice)};
  reading.leases[0].starts_containers = true;
  SeenProcess inside = process(10, 0, gib(3));
  inside.container = true;
  reading.processes = {inside};
  const auto steps = see();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_TRUE(steps[0].finding.container);
  EXPECT_EQ(steps[0].finding.perhaps_of, kLease);
}

TEST_F(WatcherTest, LeaseOverItsLimitIsFoundAndTheEscapedProcessStopped) {
  action = Action::kStop;
  reading.leases = {slice(kLease, kAlice, gib(4))};
  SeenProcess held = process(10, kAlice, gib(3), kLease);
  held.tenant = true;
  reading.processes = {held, process(11, kAlice, gib(2), kLease)};
  auto steps = see();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].finding.kind, FindingKind::kOverLimit);
  steps = see();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].what, Step::What::kTerminate);
  ASSERT_EQ(steps[0].targets.size(), 1u);
  EXPECT_EQ(steps[0].targets[0].pid, 11);
}

TEST_F(WatcherTest, WithinTheToleranceALeaseIsWithinItsLimit) {
  reading.leases = {slice(kLease, kAlice, gib(4))};
  reading.processes = {process(10, kAlice, gib(4) + mib(60), kLease)};
  EXPECT_THAT(see(), IsEmpty());
}

TEST_F(WatcherTest, StopAsksAtTheSecondReadingAndKillsAfterTheGraceOnceEach) {
  action = Action::kStop;
  policy.stop_grace = 5s;
  reading.processes = {process(10, kBob, gib(3))};
  EXPECT_EQ(see().size(), 1u);
  auto steps = see();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].what, Step::What::kTerminate);
  steps = see_until(4s);
  EXPECT_THAT(steps, IsEmpty());
  steps = see_until(1min);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].what, Step::What::kKill);
  EXPECT_EQ(steps[0].targets[0].pid, 10);
}

TEST_F(WatcherTest, ReusedPidIsReadAgain) {
  action = Action::kStop;
  reading.processes = {process(10, kBob, gib(3))};
  (void)see();
  (void)see();
  reading.processes[0].start_ticks += 1;
  const auto steps = see();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].what, Step::What::kTerminate);
}

TEST_F(WatcherTest, ReportAndNotifyStopNothing) {
  action = Action::kNotify;
  reading.processes = {process(10, kBob, gib(3))};
  EXPECT_EQ(see_until(10min).size(), 1u);
}

TEST_F(WatcherTest, AReservedGpuThatNobodyUsesIsFoundWithSinceWhen) {
  policy.unused_after = 10min;
  reading.leases = {exclusive(kLease, kAlice)};
  reading.processes = {process(10, kAlice, gib(1), kLease)};
  (void)see();
  const TimePoint last = now;
  reading.processes.clear();
  const auto steps = see_until(20min);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].finding.kind, FindingKind::kUnused);
  EXPECT_EQ(steps[0].finding.since, last);
  reading.processes = {process(10, kAlice, gib(1), kLease)};
  ASSERT_EQ(see().size(), 1u);
  EXPECT_THAT(watcher.open(), IsEmpty());
}

TEST_F(WatcherTest, AnUnusedLeaseIsReleasedAfterTheWarningOnlyIfPolicySaysSo) {
  policy.unused_after = 10min;
  policy.unused_grace = 5min;
  reading.leases = {exclusive(kLease, kAlice)};
  EXPECT_EQ(see_until(30min).size(), 1u);
  action = Action::kStop;
  const auto steps = see_until(30min);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].what, Step::What::kRelease);
  EXPECT_EQ(steps[0].finding.lease, kLease);
}

TEST_F(WatcherTest, AParkedLeaseIsNeverUnused) {
  policy.unused_after = 10min;
  reading.leases = {exclusive(kLease, kAlice)};
  reading.leases[0].parked = true;
  EXPECT_THAT(see_until(60min), IsEmpty());
  reading.leases[0].parked = false;
  EXPECT_EQ(see_until(30min).size(), 1u);
}

TEST_F(WatcherTest, ALeaseThatUsesOneOfItsGpusIsNotReleased) {
  policy.unused_after = 1min;
  policy.unused_grace = 1min;
  action = Action::kStop;
  reading.leases = {exclusive(kLease, kAlice)};
  reading.leases[0].gpus = 2;
  const auto steps = see_until(10min);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].what, Step::What::kBegun);
}

TEST_F(WatcherTest, AFindingOfALeaseEndsWithTheLease) {
  reading.leases = {slice(kLease, kAlice, gib(4))};
  reading.processes = {process(10, kAlice, gib(5), kLease)};
  (void)see();
  reading.leases.clear();
  reading.processes.clear();
  const auto steps = see();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].what, Step::What::kEnded);
}

// The ages that a daemon stores at its end, and what the next daemon does with them.
TEST_F(WatcherTest, AgeOfAnUnusedLeaseSurvivesARestart) {
  policy.unused_after = 10min;
  reading.leases = {exclusive(kLease, kAlice)};
  (void)see();
  const TimePoint last = now;
  EXPECT_THAT(watcher.ages(now + 59s), IsEmpty()) << "a minute is not worth a write";
  (void)see_until(8min);
  const std::vector<Age> ages = watcher.ages(now);
  ASSERT_EQ(ages.size(), 1u);
  watcher = Watcher();
  watcher.restore(ages, now + 30s);
  EXPECT_EQ(watcher.ages(now + 30s), ages)
      << "a daemon that is killed before it looks loses nothing";
  const auto steps = see_until(3min);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].finding.kind, FindingKind::kUnused);
  EXPECT_EQ(steps[0].finding.since, last);
}

TEST_F(WatcherTest, ALeaseThatIsUsedAfterARestartIsNotUnusedSinceBefore) {
  policy.unused_after = 10min;
  reading.leases = {exclusive(kLease, kAlice)};
  watcher.restore({{FindingKind::kUnused, kGpu, std::nullopt, kLease, now - 1h}}, now);
  reading.processes = {process(10, kAlice, gib(1), kLease)};
  EXPECT_THAT(see(), IsEmpty());
  reading.processes.clear();
  EXPECT_THAT(see_until(9min), IsEmpty());
}

TEST_F(WatcherTest, AgeOfUseWithoutALeaseSurvivesARestartForTheSameProcess) {
  reading.processes = {process(10, kBob, gib(3)), process(11, kBob, gib(1))};
  (void)see();
  const TimePoint begun = now;
  const std::vector<Age> ages = watcher.ages(now);
  ASSERT_EQ(ages.size(), 1u);
  EXPECT_EQ(ages[0].process, std::pair(10, std::uint64_t{100}));
  now += 1h;
  watcher = Watcher();
  watcher.restore(ages, now);
  (void)see();
  EXPECT_EQ(watcher.open()[0].since, begun);
  reading.processes = {process(12, kBob, gib(3))};
  watcher = Watcher();
  watcher.restore(ages, now);
  (void)see();
  EXPECT_EQ(watcher.open()[0].since, now) << "another process of the same user";
}

TEST_F(WatcherTest, StoredAgesExpireAfterAMinute) {
  watcher.restore({{FindingKind::kUnreservedUse, kGpu, std::nullopt, std::nullopt, now - 1h}}, now);
  (void)see(1min);
  reading.hidden = {.is_known = true, .bytes = gib(9), .in_use = true};
  (void)see();
  EXPECT_EQ(watcher.open()[0].since, now);
}

TEST_F(WatcherTest, NothingIsReleasedBeforeTheDaemonHasSettled) {
  policy.unused_after = 1min;
  policy.unused_grace = 1min;
  policy.may_release = false;
  action = Action::kStop;
  reading.leases = {exclusive(kLease, kAlice)};
  watcher.restore({{FindingKind::kUnused, kGpu, std::nullopt, kLease, now - 1h}}, now);
  for (const Step& step : see_until(5s)) EXPECT_NE(step.what, Step::What::kRelease);
  policy.may_release = true;
  const auto steps = see();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].what, Step::What::kRelease);
}

TEST_F(WatcherTest, GpusDoNotMix) {
  reading.processes = {process(10, kBob, gib(3))};
  (void)see();
  reading.gpu = GpuUuid{"GPU-1"};
  reading.processes.clear();
  EXPECT_THAT(see_until(1min), IsEmpty());
  EXPECT_TRUE(watcher.has_open(kGpu));
  EXPECT_FALSE(watcher.has_open(reading.gpu));
}

TEST(Containers, AreStartedByCommandsThatTalkToAnEngine) {
  EXPECT_TRUE(talks_to_container_engine({"/usr/bin/docker", "run"}));
  EXPECT_FALSE(talks_to_container_engine({"python", "docker"}));
  EXPECT_FALSE(talks_to_container_engine({}));
}

TEST_F(WatcherTest, NoLeaseIsUnusedWithoutAProcessList) {
  policy.unused_after = 1min;
  policy.unused_grace = 1min;
  action = Action::kStop;
  reading.leases = {exclusive(kLease, kAlice)};
  reading.lists_processes = false;
  EXPECT_THAT(see_until(5min), IsEmpty());
}

TEST_F(WatcherTest, UnmeasurableUseIsStillUse) {
  policy.threshold = Bytes();
  reading.processes = {process(10, kBob, Bytes())};
  reading.processes[0].used.reset();
  const auto steps = see();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].finding.used, std::nullopt);
}

}  // namespace
}  // namespace gpurota::watch
