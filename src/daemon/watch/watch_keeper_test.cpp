// The watch on fake processes and a fake store: which users are notified of what, and which
// processes are signalled.
#include "daemon/watch/watch_keeper.h"

#include "daemon/watch/watch_keeper_test.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace gpurota::daemon {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

TEST_F(WatchKeeperTest, UnreservedUseIsAnEventWithOwnerPidAndCommand) {
  const pid_t pid = processes.spawn({.uid = 1001, .command = {"python", "steal\x1b.py"}});
  use(pid, gib(3));
  take_sample();
  const auto begun = events(proto::EventType::kFindingBegun);
  ASSERT_EQ(begun.size(), 1u);
  EXPECT_EQ(begun[0].uid, 1001u);
  EXPECT_EQ(begun[0].finding, "unreserved_use");
  EXPECT_EQ(begun[0].pids, std::vector<pid_t>{pid});
  EXPECT_THAT(begun[0].message, HasSubstr("3 GiB on GPU 0"));
  EXPECT_THAT(begun[0].message, Not(HasSubstr("\x1b")));
  EXPECT_THAT(begun[0].message, Not(HasSubstr("python"))) << "commands are for the owner";
  EXPECT_THAT(begun[0].detail, HasSubstr("python"));
  EXPECT_THAT(begun[0].detail, Not(HasSubstr("\x1b")));
  EXPECT_THAT(processes.signals(), IsEmpty());
}

TEST_F(WatchKeeperTest, AnEventWaitsForACommandThatIsBeingReadButNotForLong) {
  const pid_t late = processes.spawn({.uid = 1001, .command = {"late"}});
  processes.set_command_error(late, Code::kUnavailable);
  use(late, gib(3));
  take_sample();
  EXPECT_THAT(events(proto::EventType::kFindingBegun), IsEmpty());
  processes.set_command_error(late, std::nullopt);
  loop.advance(100ms);
  ASSERT_EQ(events(proto::EventType::kFindingBegun).size(), 1u);
  EXPECT_THAT(events(proto::EventType::kFindingBegun)[0].detail, HasSubstr("late"));
}

TEST_F(WatchKeeperTest, AnEventIsRecordedAtTheNextSampleWithoutACommandThatCannotBeRead) {
  const pid_t late = processes.spawn({.uid = 1001, .command = {"late"}});
  const pid_t stuck = processes.spawn({.uid = 1002, .command = {"stuck"}});
  processes.set_command_error(late, Code::kUnavailable);
  processes.set_command_error(stuck, Code::kTimeout);
  use(late, gib(3));
  use(stuck, gib(3));
  take_sample(20ms);
  EXPECT_THAT(events(proto::EventType::kFindingBegun), IsEmpty());
  sample.processes.clear();
  take_sample(20ms);
  const auto begun = events(proto::EventType::kFindingBegun);
  ASSERT_EQ(begun.size(), 2u);
  EXPECT_THAT(begun[1].detail, Not(HasSubstr("stuck")));
}

TEST_F(WatchKeeperTest, ForeignProcessOnAContainersGpuIsExplained) {
  const LeaseId id = lease_of(1000, std::nullopt, {"docker", "run", "image"});
  const pid_t inside =
      processes.spawn({.uid = 0, .cgroup = "/sys/fs/cgroup/docker/" + std::string(64, 'a')});
  use(inside, gib(2));
  take_sample();
  EXPECT_TRUE(loop.run_until([&] {
    return keeper.container_name(*attribution.owner_of(inside).container, inside).has_value();
  }));
  take_sample(20ms);
  const auto begun = events(proto::EventType::kFindingBegun);
  ASSERT_EQ(begun.size(), 1u);
  EXPECT_EQ(begun[0].finding, "foreign_use");
  EXPECT_THAT(begun[0].detail, HasSubstr(" in docker web (alpine:3): "));
  EXPECT_THAT(begun[0].message, Not(HasSubstr("web"))) << "its name is for the owner";
  EXPECT_THAT(begun[0].message, HasSubstr("container"));
  EXPECT_THAT(begun[0].message, HasSubstr("perhaps " + to_string(id)));
}

TEST_F(WatchKeeperTest, StopEndsTheForeignProcessAndNothingElse) {
  config.watch.foreign_use = config::WatchAction::kStop;
  const LeaseId id = lease_of(1000, std::nullopt, {"train"});
  const pid_t own = world.tables.find(id)->main->pid();
  const pid_t foreign = processes.spawn({.uid = 1001});
  const pid_t bystander = processes.spawn({.uid = 1001});
  use(own, gib(8));
  use(foreign, mib(300));
  take_sample();
  EXPECT_TRUE(processes.alive(foreign)) << "stopped on the word of one look";
  take_sample();
  EXPECT_FALSE(processes.alive(foreign));
  EXPECT_TRUE(processes.alive(own));
  EXPECT_TRUE(processes.alive(bystander));
  for (const auto& [pid, signal] : processes.signals()) EXPECT_EQ(pid, foreign);
  EXPECT_THAT(notices[id], HasSubstr("being stopped"));
  EXPECT_EQ(events(proto::EventType::kProcessStopped).size(), 1u);
}

TEST_F(WatchKeeperTest, ProcessThatDoesNotEndIsKilledAfterTheGracePeriod) {
  config.watch.unreserved_use = config::WatchAction::kStop;
  config.watch.stop_grace = 5s;
  const pid_t pid = processes.spawn({.uid = 1001, .stubborn = true});
  use(pid, gib(3));
  take_sample();
  take_sample();
  EXPECT_THAT(processes.signals(), Contains(Pair(pid, SIGTERM)));
  for (int i = 0; i < 19; ++i) take_sample();
  EXPECT_TRUE(processes.alive(pid));
  take_sample();
  take_sample();
  EXPECT_FALSE(processes.alive(pid));
}

// A pid that was used again between the reading and the signal.
TEST_F(WatchKeeperTest, AStrangerWithTheOldPidIsNotStopped) {
  config.watch.unreserved_use = config::WatchAction::kStop;
  const pid_t pid = processes.spawn({.uid = 1001});
  use(pid, gib(3));
  take_sample();
  loop.advance(250ms);
  const watch::Reading seen = keeper.reading_of(sample);
  processes.die(pid);
  processes.spawn({.uid = 1002, .pid = pid});
  keeper.on_sample(seen);
  EXPECT_TRUE(processes.alive(pid));
  EXPECT_THAT(processes.signals(), IsEmpty());
}

TEST_F(WatchKeeperTest, AProcessThatJoinedALeaseMeanwhileIsNotStopped) {
  config.watch.unreserved_use = config::WatchAction::kStop;
  const LeaseId id = lease_of(1000, gib(8), {"train"});
  const pid_t pid = processes.spawn({.uid = 1000});
  use(pid, gib(3));
  take_sample();
  loop.advance(250ms);
  const watch::Reading seen = keeper.reading_of(sample);
  leases.add_process(id, processes.id_of(pid));
  keeper.on_sample(seen);
  EXPECT_TRUE(processes.alive(pid));
}

TEST_F(WatchKeeperTest, RuleForAGroupOverridesTheGeneralRule) {
  config.watch.unreserved_use = config::WatchAction::kStop;
  config.watch.rules = {{"", {}, {"staff"}, config::WatchAction::kReport}};
  groups[1001] = {{"users", "staff"}};
  groups[1002] = {{"users"}};
  const pid_t spared = processes.spawn({.uid = 1001});
  const pid_t other = processes.spawn({.uid = 1002});
  use(spared, gib(3));
  use(other, gib(3));
  for (int i = 0; i < 4; ++i) take_sample();
  EXPECT_TRUE(processes.alive(spared));
  EXPECT_FALSE(processes.alive(other));
}

TEST_F(WatchKeeperTest, NobodyIsStoppedWhileTheirGroupsAreNotKnown) {
  config.watch.unreserved_use = config::WatchAction::kStop;
  config.watch.rules = {{"", {}, {"staff"}, config::WatchAction::kReport}};
  const pid_t pid = processes.spawn({.uid = 1001});
  use(pid, gib(3));
  for (int i = 0; i < 20; ++i) take_sample();
  EXPECT_TRUE(processes.alive(pid));
  groups[1001] = {{"users"}};
  for (int i = 0; i < 4; ++i) take_sample();
  EXPECT_FALSE(processes.alive(pid));
}

TEST_F(WatchKeeperTest, OwnerOfALeaseIsNotifiedOnItsTerminal) {
  config.watch.foreign_use = config::WatchAction::kNotify;
  const LeaseId id = lease_of(1000, std::nullopt, {"train"});
  use(processes.spawn({.uid = 1001, .command = {"secret"}}), gib(1));
  take_sample();
  EXPECT_EQ(notices[id], "bob\uFFFD[31m uses GPU 0, which is yours (L1): 1 GiB");
  EXPECT_THAT(notices[id], Not(HasSubstr("secret")));
}

TEST_F(WatchKeeperTest, UserOfAForeignGpuIsNotifiedOfTheirProcesses) {
  config.watch.foreign_use = config::WatchAction::kNotify;
  lease_of(1000, std::nullopt, {"train"});
  const pid_t pid = processes.spawn({.uid = 1001, .command = {"secret"}});
  use(pid, gib(1));
  take_sample();
  ASSERT_EQ(sent[1001].size(), 1u);
  EXPECT_EQ(sent[1001][0].text,
            fmt::format("your process {} uses GPU 0, which alice has (L1): please stop it", pid));
  EXPECT_EQ(sent[1001][0].lease, std::nullopt) << "it is not theirs";
}

// `whole` has GPU 0. `strayed` has another GPU, which is not sampled, but its process uses GPU 0.
TEST_F(WatchKeeperTest, LeaseOfAProgramThatUsesAnotherGpuIsAlwaysNotified) {
  config.watch.foreign_use = config::WatchAction::kReport;
  const LeaseId strayed = lease_of(1001, gib(1), {"train"});
  const pid_t program = world.tables.find(strayed)->main->pid();
  Lease elsewhere = world.tables.find(strayed)->lease;
  elsewhere.gpus.front().uuid = GpuUuid{"GPU-elsewhere"};
  ASSERT_TRUE(leases.change(elsewhere));
  const LeaseId whole = lease_of(1000, std::nullopt, {"train"});
  use(program, gib(2));
  take_sample();
  EXPECT_THAT(notices[strayed], HasSubstr("your process " + std::to_string(program)));
  EXPECT_THAT(notices[strayed], HasSubstr("it was started in " + to_string(strayed)));
  EXPECT_EQ(notices.count(whole), 0u) << "the site does not want that";
}

TEST_F(WatchKeeperTest, OwnerOfAUsedGpuSeesTheProcessOnlyWhereTheSiteShowsIt) {
  const LeaseId id = lease_of(1000, std::nullopt, {"train"});
  const pid_t pid = processes.spawn({.uid = 1001, .command = {"secret"}});
  use(pid, gib(1));
  take_sample();
  ASSERT_EQ(sent[1000].size(), 1u);
  EXPECT_THAT(sent[1000][0].text, Not(HasSubstr(std::to_string(pid))));
  EXPECT_EQ(sent[1000][0].lease, id);
  EXPECT_EQ(sent[1000][0].by, 1001u);
  config.privacy = config::Privacy::kOpen;
  const pid_t other = processes.spawn({.uid = 1002, .command = {"secret"}});
  use(other, gib(1));
  take_sample();
  ASSERT_EQ(sent[1000].size(), 2u);
  EXPECT_THAT(sent[1000][1].text, HasSubstr(fmt::format("process {}", other)));
}

TEST_F(WatchKeeperTest, ReportedFindingGoesToChannelsButNotToTerminals) {
  const LeaseId id = lease_of(1000, std::nullopt, {"train"});
  use(processes.spawn({.uid = 1001}), gib(1));
  take_sample();
  EXPECT_EQ(sent[1000].size(), 1u);
  EXPECT_EQ(sent[1001].size(), 1u);
  EXPECT_EQ(notices[id], "");
}

class NotLimitedTest : public WatchKeeperTest {
 protected:
  NotLimitedTest() {
    id = lease_of(1000, gib(8), {"train"});
    pid = processes.spawn({.uid = 1000, .parent = world.tables.find(id)->main->pid()});
    libraries[pid] = watch::Library::kSilent;
    use(pid, gib(1));
    take_sample();
    loop.advance(config.reconnect_grace);
  }
  void sample_for(Duration time) {
    for (Duration passed{}; passed < time; passed += 250ms) take_sample();
  }
  bool is_found() const { return !events(proto::EventType::kFindingBegun).empty(); }

  LeaseId id;
  pid_t pid = 0;
};

TEST_F(NotLimitedTest, ProgramWithoutTheLibraryIsStoppedByDefaultWithANotice) {
  const pid_t bystander = world.tables.find(id)->main->pid();
  sample_for(5s);
  EXPECT_FALSE(processes.alive(pid));
  EXPECT_TRUE(processes.alive(bystander));
  const auto begun = events(proto::EventType::kFindingBegun);
  ASSERT_EQ(begun.size(), 1u);
  EXPECT_EQ(begun[0].finding, "not_limited");
  EXPECT_EQ(begun[0].lease, id);
  EXPECT_THAT(begun[0].message, HasSubstr("libgpurota is loaded there but does not limit it"));
  EXPECT_THAT(begun[0].message, HasSubstr("GPUROTA_DEBUG=1"));
  EXPECT_THAT(begun[0].message, Not(HasSubstr(std::to_string(pid)))) << "pids are for the owner";
  EXPECT_THAT(notices[id], HasSubstr(std::to_string(pid)));
  EXPECT_THAT(notices[id], HasSubstr("being stopped"));
  EXPECT_EQ(jobs_ended, std::vector<LeaseId>{id});
  EXPECT_EQ(keeper.times_not_limited(), 1);
}

TEST_F(NotLimitedTest, NotLimitedProgramIsOnlyReportedIfTheSiteSaysSo) {
  config.watch.not_limited = config::WatchAction::kReport;
  sample_for(1min);
  EXPECT_TRUE(is_found());
  EXPECT_TRUE(processes.alive(pid));
  EXPECT_THAT(jobs_ended, IsEmpty());
  EXPECT_EQ(keeper.library_of(kGpu, pid), watch::Library::kSilent);
}

TEST_F(NotLimitedTest, RuleForAUserAppliesToNotLimitedPrograms) {
  config.watch.rules = {{"not_limited", {"alice"}, {}, config::WatchAction::kNotify}};
  sample_for(1min);
  EXPECT_TRUE(processes.alive(pid));
  EXPECT_THAT(notices[id], HasSubstr(std::to_string(pid)));
}

TEST_F(NotLimitedTest, LibraryOfATenantIsNotRead) {
  tenants.emplace(pid, id);
  sample_for(1min);
  EXPECT_FALSE(is_found());
  EXPECT_EQ(keeper.library_of(kGpu, pid), watch::Library::kNotAsked);
}

TEST_F(NotLimitedTest, ProcessThatBecameATenantBeforeTheSignalIsSpared) {
  config.watch.not_limited = config::WatchAction::kReport;
  sample_for(5s);
  config.watch.not_limited = config::WatchAction::kStop;
  const watch::Reading seen = keeper.reading_of(sample);
  tenants.emplace(pid, id);
  keeper.on_sample(seen);
  EXPECT_TRUE(processes.alive(pid));
  EXPECT_THAT(processes.signals(), IsEmpty());
}

TEST_F(NotLimitedTest, NewDaemonWaitsForTenantsToReconnect) {
  config.reconnect_grace = 20s;
  WatchKeeper fresh(parts());
  const auto sample_by_fresh = [&](Duration time) {
    for (Duration passed{}; passed < time; passed += 250ms) {
      loop.advance(250ms);
      fresh.on_sample(fresh.reading_of(sample));
    }
  };
  sample_by_fresh(20s);
  EXPECT_FALSE(is_found());
  sample_by_fresh(5s);
  EXPECT_TRUE(is_found());
}

TEST_F(WatchKeeperTest, LibraryOnAWholeGpuIsNotRead) {
  const LeaseId id = lease_of(1000, std::nullopt, {"train"});
  const pid_t pid = world.tables.find(id)->main->pid();
  libraries[pid] = watch::Library::kSilent;
  use(pid, gib(1));
  for (int i = 0; i < 40; ++i) take_sample();
  EXPECT_THAT(events(proto::EventType::kFindingBegun), IsEmpty());
  EXPECT_EQ(keeper.library_of(kGpu, pid), watch::Library::kNotAsked);
}

TEST_F(WatchKeeperTest, AnUnusedLeaseIsReleasedWhenPolicySaysSo) {
  config.watch.unused = config::WatchAction::kStop;
  config.watch.unused_after = 1min;
  config.watch.unused_grace = 1min;
  const LeaseId id = lease_of(1000, std::nullopt, {"sleep"});
  for (int i = 0; i < 10; ++i) take_sample(10s);
  EXPECT_THAT(notices[id], HasSubstr("will be released"));
  EXPECT_THAT(released, IsEmpty());
  for (int i = 0; i < 10; ++i) take_sample(10s);
  EXPECT_EQ(released, std::vector<LeaseId>{id});
}

TEST_F(WatchKeeperTest, ShortIdleTimeIsShownInSeconds) {
  config.watch.unused_after = 20s;
  lease_of(1000, std::nullopt, {"sleep"});
  for (int i = 0; i < 5; ++i) take_sample(10s);
  const auto begun = events(proto::EventType::kFindingBegun);
  ASSERT_EQ(begun.size(), 1u);
  EXPECT_THAT(begun[0].message, ::testing::ContainsRegex("not used it for [1-9][0-9]* s$"));
}

TEST_F(WatchKeeperTest, EachFindingHasOneBeginningAndOneEnd) {
  const pid_t pid = processes.spawn({.uid = 1001});
  use(pid, gib(3));
  for (int i = 0; i < 20; ++i) take_sample();
  sample.processes.clear();
  for (int i = 0; i < 20; ++i) take_sample();
  EXPECT_EQ(events(proto::EventType::kFindingBegun).size(), 1u);
  EXPECT_EQ(events(proto::EventType::kFindingEnded).size(), 1u);
}

TEST_F(WatchKeeperTest, LibrarysCountReplacesAMissingDriverFigure) {
  const LeaseId id = lease_of(1000, gib(8), {"train"});
  const pid_t pid = world.tables.find(id)->main->pid();
  tenants[pid] = id;
  counted[pid] = gib(2);
  sample.processes = {{pid, std::nullopt, false}};
  sample.used.reset();
  EXPECT_EQ(keeper.reading_of(sample).processes[0].used, gib(2));
  sample.processes = {{pid, gib(3), false}};
  EXPECT_EQ(keeper.reading_of(sample).processes[0].used, gib(3));
  sample.lists_processes = false;
  EXPECT_TRUE(keeper.has_foreign(keeper.reading_of(sample)))
      << "nobody can say that there is nobody";
}

}  // namespace
}  // namespace gpurota::daemon
