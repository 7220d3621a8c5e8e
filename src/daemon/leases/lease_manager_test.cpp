#include "daemon/leases/lease_manager.h"

#include "base/log.h"
#include "daemon/leases/lease_kill.h"
#include "daemon/leases/lease_manager_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST_F(LeaseManagerTest, LeaseIsStoredBeforeItsUserIsNotified) {
  const pid_t cli = processes.spawn();
  const auto lease = acquire(gib(8), cli);
  ASSERT_TRUE(lease);
  EXPECT_THAT(store.leases(), Contains(Pair((*lease)->lease.id, ::testing::_)));
  EXPECT_EQ(world->rooms.list().front().reserved, gib(8));
}

TEST_F(LeaseManagerTest, LeaseThatCannotBeStoredIsRefused) {
  const pid_t cli = processes.spawn();
  store.set_failure(Error{Code::kIo, ENOSPC, "disk full"});
  const auto refused = acquire(gib(8), cli);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().error.message, HasSubstr("disk full"));
  EXPECT_TRUE(world->tables.leases.empty());
  ASSERT_TRUE(world->tables.store_error) << "it is told, as gpurota-web's readyz";
  manager->check_store();
  EXPECT_TRUE(world->tables.store_error);
  store.set_failure(std::nullopt);
  manager->check_store();
  EXPECT_FALSE(world->tables.store_error) << "there is room again";
}

TEST_F(LeaseManagerTest, LeaseEndedOnAFullDiskIsRemovedFromTheStoreLater) {
  const pid_t cli = processes.spawn();
  const LeaseId id = (*acquire(gib(8), cli))->lease.id;
  store.set_failure(Error{Code::kIo, ENOSPC, "disk full"});
  manager->end(id, EndCause::kReleased, "it was released");
  loop.advance(50ms);
  EXPECT_EQ(world->tables.find(id), nullptr);
  manager->check_store();
  EXPECT_THAT(store.leases(), Contains(Pair(id, ::testing::_)));
  store.set_failure(std::nullopt);
  manager->check_store();
  EXPECT_TRUE(store.leases().empty()) << "a reservation would come back with the next daemon";
}

TEST_F(LeaseManagerTest, TheHolderMayCallTheCommandByANumberOfItsOwnPidNamespace) {
  const pid_t cli = processes.spawn();
  const LeaseId id = (*acquire(gib(8), cli))->lease.id;
  const pid_t command = processes.spawn({.parent = cli});
  processes.call(cli, command, 7);
  ASSERT_TRUE(manager->start(id, 7, false));
  EXPECT_EQ(world->tables.find(id)->main->pid(), command);
  EXPECT_TRUE(manager->start(id, 7, false)) << "and once more";
}

TEST_F(LeaseManagerTest, ALeaseEndsWithItsCommandAndTakesTheLeftoversWithIt) {
  const pid_t cli = processes.spawn();
  const LeaseId id = (*acquire(gib(8), cli))->lease.id;
  const pid_t command = processes.spawn({.parent = cli});
  ASSERT_TRUE(manager->start(id, command, false));
  const pid_t background = processes.spawn({.parent = command});
  processes.die(command);
  loop.advance(50ms);
  EXPECT_FALSE(processes.alive(background));
  EXPECT_TRUE(processes.alive(cli));
  EXPECT_EQ(last_gone, id);
  EXPECT_TRUE(store.leases().empty());
}

TEST_F(LeaseManagerTest, ProcessThatDoesNotEndIsKilledAfterTheGrace) {
  const pid_t cli = processes.spawn();
  const LeaseId id = (*acquire(gib(8), cli))->lease.id;
  const pid_t command = processes.spawn({.parent = cli, .stubborn = true});
  ASSERT_TRUE(manager->start(id, command, false));
  manager->end(id, EndCause::kReleased, "test");
  loop.advance(config.grace - 100ms);
  EXPECT_TRUE(processes.alive(command));
  EXPECT_THAT(processes.signals(), Contains(Pair(command, SIGTERM)));
  loop.advance(200ms);
  EXPECT_FALSE(processes.alive(command));
  EXPECT_EQ(last_gone, id);
}

TEST_F(LeaseManagerTest, AProcessThatCannotBeKilledKeepsNoLeaseForLong) {
  const pid_t cli = processes.spawn();
  const LeaseId id = (*acquire(gib(8), cli))->lease.id;
  const pid_t command = processes.spawn({.parent = cli, .unkillable = true});
  ASSERT_TRUE(manager->start(id, command, false));
  manager->end(id, EndCause::kReleased, "test");
  loop.advance(config.grace + kEngineTakes + 9s);
  EXPECT_EQ(last_gone, LeaseId());
  loop.advance(2s);
  EXPECT_TRUE(processes.alive(command));
  EXPECT_EQ(last_gone, id);
}

TEST_F(LeaseManagerTest, AProcessThatCannotBeKilledKeepsItsLeaseWhileItsMemoryIsCounted) {
  const pid_t cli = processes.spawn();
  const LeaseId id = (*acquire(gib(8), cli))->lease.id;
  const pid_t command = processes.spawn({.parent = cli, .unkillable = true});
  memory_is_held = true;
  ASSERT_TRUE(manager->start(id, command, false));
  manager->end(id, EndCause::kReleased, "test");
  loop.advance(config.grace + 59s);
  EXPECT_EQ(last_gone, LeaseId());
  loop.advance(2s);
  EXPECT_EQ(last_gone, id) << "the memory is then used without a lease";
}

TEST_F(LeaseManagerTest, SlowlyEndingLeaseIsCheckedMoreAndMoreRarely) {
  processes.cgroups().set_available(false);
  const pid_t cli = processes.spawn();
  const LeaseId id = (*acquire(gib(8), cli))->lease.id;
  const pid_t command = processes.spawn({.parent = cli, .stubborn = true});
  ASSERT_TRUE(manager->start(id, command, false));
  int walks = 0;
  processes.set_on_walk([&] { ++walks; });
  manager->end(id, EndCause::kReleased, "test");
  loop.advance(config.grace - 100ms);
  EXPECT_LT(walks, 60) << "in 5 seconds; every 10 ms it would be 500";
  EXPECT_GT(walks, 10);
}

TEST_F(LeaseManagerTest, PodmanMayCleanUpAfterItsContainerBeforeItIsKilledItself) {
  const pid_t cli = processes.spawn();
  const LeaseId id = (*acquire(gib(8), cli))->lease.id;
  const pid_t podman =
      processes.spawn({.parent = cli, .stubborn = true, .executable = "/usr/bin/podman"});
  ASSERT_TRUE(manager->start(id, podman, false));
  const pid_t monitor =
      processes.spawn({.parent = podman, .stubborn = true, .executable = "/usr/bin/conmon"});
  const pid_t inside = processes.spawn({.parent = monitor, .stubborn = true});
  manager->end(id, EndCause::kReleased, "test");
  loop.advance(config.grace + 50ms);
  EXPECT_FALSE(processes.alive(inside));
  EXPECT_TRUE(processes.alive(podman));
  loop.advance(kEngineSees);
  EXPECT_FALSE(processes.alive(podman));
  EXPECT_TRUE(processes.alive(monitor));
  loop.advance(kEngineTakes - kEngineSees);
  EXPECT_FALSE(processes.alive(monitor));
  EXPECT_EQ(last_gone, id);
}

TEST_F(LeaseManagerTest, LongWalksOfProcessesLeaveMostOfTheTimeToOthers) {
  processes.cgroups().set_available(false);
  const pid_t cli = processes.spawn();
  const LeaseId id = (*acquire(gib(8), cli))->lease.id;
  const pid_t command = processes.spawn({.parent = cli, .stubborn = true});
  ASSERT_TRUE(manager->start(id, command, false));
  Duration walking{};
  processes.set_on_walk([&] {
    walking += 100ms;
    loop.pass(100ms);
  });
  const TimePoint begun = loop.now();
  manager->end(id, EndCause::kReleased, "test");
  loop.advance(config.grace + 300ms);
  EXPECT_FALSE(processes.alive(command)) << "and it is killed in time";
  EXPECT_GT(walking, 0ms);
  EXPECT_LT(walking, (loop.now() - begun) / 4);
}

TEST_F(LeaseManagerTest, MemoryOfADeadProcessIsNotYetFree) {
  const pid_t cli = processes.spawn();
  const LeaseId id = (*acquire(gib(8), cli))->lease.id;
  const pid_t command = processes.spawn({.parent = cli});
  ASSERT_TRUE(manager->start(id, command, false));
  memory_is_held = true;
  processes.die(command);
  loop.advance(4700ms);
  EXPECT_EQ(world->rooms.list().front().reserved, gib(8));
  memory_is_held = false;
  manager->check_endings();
  EXPECT_TRUE(world->tables.leases.empty());
}

// The next lease gets all of the GPU. If the filler's last allocations were not in a sample, the
// first allocation of that lease could fail.
TEST_F(LeaseManagerTest, AFillerIsGoneWhenTheGpuWasReadAfterItsEnd) {
  AcquireRequest request;
  request.uid = 1000;
  request.process = processes.id_of(processes.spawn());
  request.kind = LeaseKind::kFiller;
  const LeaseId id = (*world->queue.acquire(request))->lease.id;
  const pid_t command = processes.spawn({.parent = request.process.pid});
  ASSERT_TRUE(manager->start(id, command, false));
  manager->end(id, EndCause::kReleased, "somebody needs its GPU");
  loop.advance(100ms);
  EXPECT_FALSE(processes.alive(command));
  EXPECT_TRUE(world->tables.find(id)) << "nobody has looked since";
  GpuEntry* const gpu = gpus.find(kGpu);
  gpu->taken = loop.now();
  loop.advance(50ms);
  EXPECT_FALSE(world->tables.find(id));
  EXPECT_EQ(world->states.of(kGpu).idle_since, WallTime()) << "for others it was idle";
}

TEST_F(LeaseManagerTest, FillersCountAgainstLimitsOnlyIfTheSiteSaysSo) {
  config.max_leases_per_user = 1;
  AcquireRequest request;
  request.uid = 1000;
  request.process = processes.id_of(processes.spawn());
  request.kind = LeaseKind::kFiller;
  const LeaseId filler = (*world->queue.acquire(request))->lease.id;
  request.kind = LeaseKind::kRun;
  EXPECT_TRUE(world->allowances.check(request, false));
  config.filler.count_against_limits = true;
  EXPECT_FALSE(world->allowances.check(request, false));
  EXPECT_TRUE(world->tables.find(filler));
}

TEST_F(LeaseManagerTest, AShareBeyondTheUsersLimitIsRefusedAtOnceUnlessItCanFitLater) {
  config.limits.everyone.compute = 50;
  ASSERT_TRUE(world->users.resolve(1s, {}));
  AcquireRequest request;
  request.uid = 1000;
  request.process = processes.id_of(processes.spawn());
  request.placement.memory = SizeSpec{gib(2), 0};
  request.placement.compute.least = 30;
  request.lasts = 1h;
  ASSERT_TRUE(world->queue.enqueue(request));
  request.placement.compute.least = 40;
  const auto waits = world->queue.enqueue(request);
  ASSERT_TRUE(waits) << waits.error().error.message;
  EXPECT_TRUE(waits->entry) << "it fits when the lease has ended";
  world->queue.leave(waits->entry->id, Error{Code::kGone, 0, "cancelled"});
  request.placement.compute.least = 20;
  request.lasts.reset();
  ASSERT_TRUE(world->queue.acquire(request));
  request.placement.compute.least = 40;
  const auto refused = world->queue.enqueue(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().error.code, Code::kLimit);
  EXPECT_THAT(refused.error().error.message, HasSubstr("you have 20 % there and ask for 40 %"));
  config.limits.everyone.compute = kMostComputeShare;
  ASSERT_TRUE(world->users.resolve(1s, {}));
  request.placement.compute.least = 80;
  EXPECT_TRUE(world->queue.enqueue(request)) << "the site sets no limit";
}

TEST_F(LeaseManagerTest, TheDeathOfTheHolderEndsItsCommand) {
  const pid_t cli = processes.spawn();
  const LeaseId id = (*acquire(gib(8), cli))->lease.id;
  const pid_t command = processes.spawn({.parent = cli});
  ASSERT_TRUE(manager->start(id, command, false));
  processes.die(cli);
  loop.advance(50ms);
  EXPECT_FALSE(processes.alive(command));
  EXPECT_EQ(last_gone, id);
}

TEST_F(LeaseManagerTest, WithoutACgroupDescendantsThatLeftTheirParentsAreFound) {
  processes.cgroups().set_available(false);
  const pid_t cli = processes.spawn();
  const LeaseId id = (*acquire(gib(8), cli))->lease.id;
  const pid_t command = processes.spawn({.parent = cli});
  const auto cgroup = manager->start(id, command, true);
  ASSERT_TRUE(cgroup);
  EXPECT_FALSE(*cgroup);
  const pid_t stray = processes.spawn({.parent = cli});  // an orphan that the subreaper collects
  processes.die(command);
  loop.advance(50ms);
  EXPECT_FALSE(processes.alive(stray));
}

TEST_F(LeaseManagerTest, CommandWaitsUntilItIsInItsCgroup) {
  processes.cgroups().set_moves_wait(true);
  const pid_t cli = processes.spawn();
  const LeaseId id = (*acquire(gib(8), cli))->lease.id;
  const pid_t command = processes.spawn({.parent = cli});
  const auto group = manager->start(id, command, false);
  ASSERT_TRUE(group && *group);
  EXPECT_TRUE(manager->is_moving(id));
  ASSERT_TRUE(manager->start(id, command, false)) << "the call is repeated";
  processes.cgroups().finish_moves();
  EXPECT_FALSE(manager->is_moving(id));
  EXPECT_EQ(world->moved, 1) << "one move only";
  EXPECT_EQ(processes.cgroups().of(command), **group);
  EXPECT_EQ(**manager->start(id, command, false), **group);
  EXPECT_FALSE(manager->is_moving(id)) << "and none when it is there";
}

TEST_F(LeaseManagerTest, CommandThatCannotBeMovedIsFollowedWithoutACgroup) {
  processes.cgroups().set_enterable(false);
  const pid_t cli = processes.spawn();
  const LeaseId id = (*acquire(gib(8), cli))->lease.id;
  const pid_t command = processes.spawn({.parent = cli});
  const auto group = manager->start(id, command, true);
  ASSERT_TRUE(group);
  EXPECT_FALSE(*group);
  EXPECT_FALSE(manager->is_moving(id));
  EXPECT_EQ(store.leases().begin()->second.cgroup, "");
  const pid_t stray = processes.spawn({.parent = cli});
  processes.die(command);
  loop.advance(50ms);
  EXPECT_FALSE(processes.alive(stray)) << "followed by its parent";
  EXPECT_EQ(last_gone, id);
}

TEST_F(LeaseManagerTest, LeaseThatEndsDuringTheMoveLeavesOthersInTheCgroupAlone) {
  processes.cgroups().set_moves_wait(true);
  const pid_t cli = processes.spawn();
  const LeaseId id = (*acquire(gib(8), cli))->lease.id;
  const pid_t command = processes.spawn({.parent = cli});
  const auto group = manager->start(id, command, false);
  ASSERT_TRUE(group && *group);
  // Another process has got the command's pid, and was moved instead of the command.
  const pid_t stranger = processes.spawn();
  processes.cgroups().put(stranger, **group, 0);
  processes.die(command);
  loop.advance(50ms);
  EXPECT_EQ(last_gone, id);
  EXPECT_TRUE(processes.alive(stranger));
  processes.cgroups().finish_moves();
  EXPECT_TRUE(processes.alive(stranger));
}

TEST_F(LeaseManagerTest, NextDaemonMovesACommandThatTheLastOneDidNot) {
  processes.cgroups().set_moves_wait(true);
  const pid_t cli = processes.spawn();
  const LeaseId id = (*acquire(gib(8), cli))->lease.id;
  const pid_t command = processes.spawn({.parent = cli});
  const auto group = manager->start(id, command, false);
  ASSERT_TRUE(group && *group);
  processes.cgroups().drop_moves();
  restart();
  ASSERT_TRUE(manager->start(id, command, false)) << "the client got no answer";
  EXPECT_TRUE(manager->is_moving(id));
  processes.cgroups().finish_moves();
  EXPECT_EQ(processes.cgroups().of(command), **group);
}

TEST_F(LeaseManagerTest, SubreaperFlagOfTheHolderSurvivesARestart) {
  processes.cgroups().set_available(false);
  for (const bool subreaper : {true, false}) {
    const pid_t cli = processes.spawn();
    const LeaseId id = (*acquire(gib(1), cli))->lease.id;
    ASSERT_TRUE(manager->start(id, processes.spawn({.parent = cli}), subreaper));
    restart();
    const pid_t other = processes.spawn({.parent = cli});  // a subreaper has no children of its own
    manager->end(id, EndCause::kReleased, "");
    loop.advance(50ms);
    EXPECT_EQ(processes.alive(other), !subreaper);
  }
}

TEST_F(LeaseManagerTest, OnlyAChildOfTheHolderCanBeStarted) {
  const pid_t cli = processes.spawn();
  const LeaseId id = (*acquire(gib(8), cli))->lease.id;
  EXPECT_EQ(manager->start(id, processes.spawn(), false).error().code, Code::kDenied);
  EXPECT_EQ(manager->start(id, processes.spawn({.uid = 0, .parent = cli}), false).error().code,
            Code::kDenied);
  const pid_t command = processes.spawn({.parent = cli});
  const auto started = manager->start(id, command, false);
  ASSERT_TRUE(started);
  const auto again = manager->start(id, command, false);
  ASSERT_TRUE(again) << "who did not hear the answer asks again";
  EXPECT_EQ(*again, *started);
  EXPECT_EQ(manager->start(id, processes.spawn({.parent = cli}), false).error().code,
            Code::kInvalid);
}

TEST_F(LeaseManagerTest, ARestartLosesNothing) {
  const pid_t cli = processes.spawn();
  const LeaseId id = (*acquire(gib(8), cli))->lease.id;
  const pid_t command = processes.spawn({.parent = cli});
  ASSERT_TRUE(manager->start(id, command, false));
  restart();
  ASSERT_TRUE(world->tables.find(id));
  EXPECT_FALSE(world->tables.find(id)->cause);
  EXPECT_EQ(world->rooms.list().front().reserved, gib(8));
  EXPECT_TRUE(grants->find(id, kGpu));
  processes.die(command);
  loop.advance(50ms);
  EXPECT_EQ(last_gone, id);
}

TEST_F(LeaseManagerTest, ASliceNeedsTheDriversLimitIfTheSiteRequiredItWhenTheSliceWasMade) {
  const LeaseId older = (*acquire(gib(8), processes.spawn()))->lease.id;
  config.enforcement = config::Enforcement::kDriver;
  const LeaseId slice = (*acquire(gib(8), processes.spawn()))->lease.id;
  restart();
  EXPECT_FALSE(world->tables.find(older)->needs_driver_limit);
  EXPECT_TRUE(world->tables.find(slice)->needs_driver_limit);
}

TEST_F(LeaseManagerTest, ADaemonThatCannotReadProcessesDoesNotStartAndTakesNoneForDead) {
  const pid_t cli = processes.spawn();
  const LeaseId id = (*acquire(gib(8), cli))->lease.id;
  const pid_t command = processes.spawn({.parent = cli});
  ASSERT_TRUE(manager->start(id, command, false));
  stop();
  processes.set_short(true);
  begin();
  const auto restored = manager->restore();
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, Code::kLimit);
  processes.set_short(false);
  restart();
  ASSERT_TRUE(world->tables.find(id));
  EXPECT_FALSE(world->tables.find(id)->cause);
  EXPECT_TRUE(processes.alive(command));
}

TEST_F(LeaseManagerTest, LeaseStaysWhileItsProcessesCannotBeRead) {
  for (const bool cgroups : {true, false}) {
    processes.cgroups().set_available(cgroups);
    const pid_t cli = processes.spawn();
    const LeaseId id = (*acquire(gib(8), cli))->lease.id;
    const pid_t command = processes.spawn({.parent = cli});
    ASSERT_TRUE(manager->start(id, command, true));
    const pid_t stray = processes.spawn({.parent = cgroups ? command : cli, .stubborn = true});
    processes.set_short(true);
    processes.die(command);
    loop.advance(50ms);
    EXPECT_NE(last_gone, id);
    loop.advance(config.grace + 2min);
    EXPECT_NE(last_gone, id) << "however long that lasts";
    EXPECT_TRUE(processes.alive(stray));
    processes.set_short(false);
    loop.advance(config.grace + 100ms);
    EXPECT_FALSE(processes.alive(stray));
    EXPECT_EQ(last_gone, id);
  }
}

TEST_F(LeaseManagerTest, LeaseWhoseProcessesDiedWithoutADaemonIsReleased) {
  const pid_t cli = processes.spawn();
  const LeaseId id = (*acquire(gib(8), cli))->lease.id;
  const pid_t command = processes.spawn({.parent = cli});
  ASSERT_TRUE(manager->start(id, command, false));
  stop();
  const ports::ProcessId old = processes.id_of(command);
  processes.die(command);
  const pid_t reused = processes.spawn({.pid = command});
  ASSERT_NE(processes.id_of(reused), old);
  restart();
  loop.advance(50ms);
  EXPECT_EQ(last_gone, id);
  EXPECT_TRUE(processes.alive(reused)) << "a stranger with the old pid was ended";
}

TEST_F(LeaseManagerTest, AfterARebootNothingOfTheOldLeasesIsTouched) {
  const pid_t cli = processes.spawn();
  const LeaseId id = (*acquire(gib(8), cli))->lease.id;
  const pid_t command = processes.spawn({.parent = cli});
  ASSERT_TRUE(manager->start(id, command, false));
  processes.set_boot_id("another");
  restart();
  loop.advance(50ms);
  EXPECT_EQ(last_gone, id);
  EXPECT_TRUE(processes.alive(command));
}

TEST_F(LeaseManagerTest, ALimitCanBeChangedWhileItRuns) {
  const pid_t cli = processes.spawn();
  const LeaseId id = (*acquire(gib(8), cli))->lease.id;
  ASSERT_TRUE(world->updates.update(id, {SizeSpec{gib(4), 0}, std::nullopt, "smaller"}));
  EXPECT_EQ(*world->tables.find(id)->lease.gpus.front().limit, gib(4));
  EXPECT_EQ(store.leases().at(id).note, "smaller");
  EXPECT_EQ(world->updates.update(id, {SizeSpec{gib(25), 0}, {}, {}}).error().code, Code::kLimit);
  EXPECT_EQ(world->updates.update(id, {{}, SizeSpec{gib(5), 0}, {}}).error().code, Code::kInvalid);
  store.set_failure(Error{Code::kIo, ENOSPC, "disk full"});
  EXPECT_FALSE(world->updates.update(id, {SizeSpec{gib(2), 0}, {}, {}}));
  EXPECT_EQ(*world->tables.find(id)->lease.gpus.front().limit, gib(4));
}

TEST_F(LeaseManagerTest, AnExclusiveLeaseHasNoLimitToChange) {
  const LeaseId id = (*acquire(std::nullopt, processes.spawn()))->lease.id;
  EXPECT_EQ(world->updates.update(id, {SizeSpec{gib(4), 0}, {}, {}}).error().code, Code::kInvalid);
}

TEST_F(LeaseManagerTest, ANewPriorityIsStoredAndBoundedUnlessAnAdministratorGivesIt) {
  const LeaseId id = (*acquire(gib(8), processes.spawn()))->lease.id;
  UpdateRequest request;
  request.priority = 5;
  const auto refused = world->updates.update(id, request);
  EXPECT_EQ(refused.error().code, Code::kLimit) << "the default allows 0";
  EXPECT_THAT(refused.error().message, HasSubstr("priorities up to 0"));
  request.beyond_limits = true;
  ASSERT_TRUE(world->updates.update(id, request));
  EXPECT_EQ(store.leases().at(id).priority, 5);
  request.beyond_limits = false;
  request.priority = 3;
  EXPECT_TRUE(world->updates.update(id, request)) << "less than an administrator has given";
  request.priority = -10;
  EXPECT_TRUE(world->updates.update(id, request));
  restart();
  EXPECT_EQ(world->tables.find(id)->lease.priority, -10);
}

TEST_F(LeaseManagerTest, OnlyALeaseThatTakesTurnsHasAQuantum) {
  const LeaseId slice = (*acquire(gib(8), processes.spawn()))->lease.id;
  UpdateRequest request;
  request.quantum = 2000ms;
  EXPECT_EQ(world->updates.update(slice, request).error().code, Code::kInvalid);
  AcquireRequest swap;
  swap.uid = 1000;
  swap.process = processes.id_of(processes.spawn());
  swap.placement.swap = true;
  swap.quantum = 5000ms;
  const auto made = world->queue.acquire(swap);
  ASSERT_TRUE(made) << made.error().error.message;
  const LeaseId id = (*made)->lease.id;
  restart();
  EXPECT_EQ(world->tables.find(id)->lease.quantum, 5000ms);
  ASSERT_TRUE(world->updates.update(id, request));
  EXPECT_EQ(store.leases().at(id).quantum, 2000ms);
}

TEST_F(LeaseManagerTest, ALeaseThatSharesItsGpuCanBecomeInteractiveWhereTheSiteAllowsIt) {
  const LeaseId id = (*acquire(gib(8), processes.spawn()))->lease.id;
  AcquireRequest in_turns;
  in_turns.uid = 1000;
  in_turns.process = processes.id_of(processes.spawn());
  in_turns.placement.swap = true;
  const auto made = world->queue.acquire(in_turns);
  ASSERT_TRUE(made) << made.error().error.message;
  const LeaseId swap = (*made)->lease.id;
  UpdateRequest request;
  request.latency = LatencyClass::kInteractive;
  ASSERT_TRUE(world->updates.update(id, request));
  EXPECT_EQ(store.leases().at(id).latency, LatencyClass::kInteractive);
  ASSERT_TRUE(world->updates.update(swap, request));
  EXPECT_EQ(store.leases().at(swap).latency, LatencyClass::kInteractive);
  restart();
  EXPECT_EQ(world->tables.find(id)->lease.latency, LatencyClass::kInteractive);
  config.limits.everyone.interactive = false;
  ASSERT_TRUE(world->users.resolve(1s, {}));
  EXPECT_TRUE(world->updates.update(id, request)) << "it is already";
  request.latency = LatencyClass::kNormal;
  EXPECT_TRUE(world->updates.update(swap, request)) << "every lease can be normal";
  ASSERT_TRUE(world->updates.update(id, request));
  request.latency = LatencyClass::kInteractive;
  const auto forbidden = world->updates.update(id, request);
  EXPECT_EQ(forbidden.error().code, Code::kLimit);
  EXPECT_THAT(forbidden.error().message, HasSubstr("[limits] interactive"));
  request.beyond_limits = true;
  EXPECT_TRUE(world->updates.update(id, request)) << "by an administrator";
}

TEST_F(LeaseManagerTest, WhereSoftLimitsMoveMemoryOutASliceCanHaveNone) {
  config.soft_limit.policy = config::SoftLimit::Policy::kEvict;
  const LeaseId id = (*acquire(gib(8), processes.spawn()))->lease.id;
  const auto refused = world->updates.update(id, {{}, SizeSpec{gib(4), 0}, {}});
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_THAT(refused.error().message, HasSubstr("which a slice does not allow"));
  config.soft_limit.policy = config::SoftLimit::Policy::kThrottle;
  EXPECT_TRUE(world->updates.update(id, {{}, SizeSpec{gib(4), 0}, {}}));
}

TEST_F(LeaseManagerTest, OneUserCannotTakeAllLeases) {
  config.max_leases_per_user = 2;
  const pid_t cli = processes.spawn();
  EXPECT_TRUE(acquire(gib(1), cli));
  EXPECT_TRUE(acquire(gib(1), cli));
  EXPECT_EQ(acquire(gib(1), cli).error().error.code, Code::kLimit);
}

TEST_F(LeaseManagerTest, ALeaseThatIsNeverStartedEndsWithItsConnection) {
  const LeaseId id = (*acquire(gib(8), processes.spawn()))->lease.id;
  manager->abandon(id);
  loop.advance(50ms);
  EXPECT_EQ(last_gone, id);
}

TEST_F(LeaseManagerTest, RefusalsSayWhoHasTheMemory) {
  processes.set_user(1000, "alice\x1b[31m");
  ASSERT_TRUE(acquire(gib(20), processes.spawn()));
  const auto refused = acquire(gib(8), processes.spawn());
  EXPECT_EQ(refused.error().error.code, Code::kNoGpu);
  EXPECT_THAT(refused.error().error.message, HasSubstr("4 GiB left"));
  EXPECT_THAT(refused.error().error.message, HasSubstr("alice"));
  EXPECT_THAT(refused.error().error.message, ::testing::Not(HasSubstr("\x1b")));
}

TEST_F(LeaseManagerTest, UnstoredEndIsReportedUntilItIsStored) {
  memory_is_held = true;  // the lease is not gone yet
  const pid_t cli = processes.spawn();
  const auto lease = acquire(gib(8), cli);
  ASSERT_TRUE(lease);
  const LeaseId id = (*lease)->lease.id;
  store.set_failure(Error{Code::kIo, ENOSPC, "disk full"});
  manager->end(id, EndCause::kReleased, "it was released");
  const auto heard = manager->heard_of_end(id);
  ASSERT_FALSE(heard);
  EXPECT_THAT(heard.error().message,
              HasSubstr("the change is in effect, but not stored: disk full"));
  manager->end(id, EndCause::kReleased, "again");
  EXPECT_FALSE(manager->heard_of_end(id)) << "whoever asks again is told the same";
  manager->check_store();
  EXPECT_FALSE(manager->heard_of_end(id));
  EXPECT_FALSE(store.leases().at(id).ending);
  store.set_failure(std::nullopt);
  manager->check_store();
  EXPECT_TRUE(manager->heard_of_end(id));
  EXPECT_TRUE(store.leases().at(id).ending) << "a daemon that is killed now leaves an ending lease";
}

TEST_F(LeaseManagerTest, StoredEndIsNotReported) {
  const pid_t cli = processes.spawn();
  const auto lease = acquire(gib(8), cli);
  ASSERT_TRUE(lease);
  const LeaseId id = (*lease)->lease.id;
  manager->end(id, EndCause::kReleased, "it was released");
  EXPECT_TRUE(manager->heard_of_end(id));
}

}  // namespace
}  // namespace gpurota::daemon
