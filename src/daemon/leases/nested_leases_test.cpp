// Leases and commands in the shell of a lease.
#include "daemon/leases/attribution.h"
#include "daemon/leases/lease_manager_test.h"
#include "daemon/leases/own_shell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class NestedLeasesTest : public LeaseManagerTest {};

TEST_F(NestedLeasesTest, LeftoverProcessesAreCountedUnlessTheyEndThemselves) {
  const pid_t cli = processes.spawn();
  const LeaseId id = (*acquire(gib(8), cli))->lease.id;
  const pid_t command = processes.spawn({.parent = cli});
  ASSERT_TRUE(manager->start(id, command, false));
  const pid_t helper = processes.spawn({.parent = command});
  for (int i = 0; i < 2; ++i) processes.spawn({.parent = command, .stubborn = true});
  processes.die(command);
  loop.advance(10ms);
  EXPECT_TRUE(processes.alive(helper)) << "it has a moment to end by itself";
  processes.die(helper);
  loop.advance(50ms);
  ASSERT_TRUE(world->tables.find(id));
  EXPECT_EQ(world->tables.find(id)->left_behind, 2);
}

TEST_F(NestedLeasesTest, ACommandInTheShellOfALeaseIsOneMoreAndEndsAlone) {
  const pid_t cli = processes.spawn();
  const LeaseId id = (*acquire(gib(8), cli))->lease.id;
  const pid_t shell = processes.spawn({.parent = cli});
  ASSERT_TRUE(manager->start(id, shell, false));
  const pid_t inner = processes.spawn({.parent = shell});
  const pid_t command = processes.spawn({.parent = inner});
  ASSERT_TRUE(manager->start_command(id, {command, processes.id_of(inner), false, {}}));
  EXPECT_EQ(world->tables.find(id)->commands.size(), 1u);
  restart();
  EXPECT_EQ(world->tables.find(id)->commands.size(), 1u);
  processes.die(command);
  loop.advance(50ms);
  EXPECT_TRUE(world->tables.find(id)->commands.empty());
  EXPECT_FALSE(world->tables.find(id)->cause);
  processes.die(shell);
  loop.advance(100ms);
  EXPECT_EQ(last_gone, id);
}

// With control groups, and without.
TEST_F(NestedLeasesTest, InnermostOfNestedLeasesHasTheProcess) {
  for (const bool cgroups : {true, false}) {
    processes.cgroups().set_available(cgroups);
    const pid_t cli = processes.spawn();
    const LeaseId outer = (*acquire(gib(1), cli))->lease.id;
    const pid_t shell = processes.spawn({.parent = cli});
    ASSERT_TRUE(manager->start(outer, shell, false));
    const pid_t inner_cli = processes.spawn({.parent = shell});
    const LeaseId inner = (*acquire(gib(1), inner_cli))->lease.id;
    const pid_t command = processes.spawn({.parent = inner_cli});
    ASSERT_TRUE(manager->start(inner, command, false));
    manager->follow_processes();
    Attribution attribution(processes, world->tables);
    EXPECT_EQ(attribution.owner_of(command).lease, inner) << cgroups;
    EXPECT_EQ(attribution.owner_of(inner_cli).lease, outer) << cgroups;
    manager->end(outer, EndCause::kReleased, "");
    loop.advance(100ms);
  }
}

TEST_F(NestedLeasesTest, RequestThatWouldWaitForItsOwnShellIsRefused) {
  const pid_t cli = processes.spawn();
  const LeaseId id = (*acquire(std::nullopt, cli))->lease.id;
  const pid_t shell = processes.spawn({.parent = cli});
  ASSERT_TRUE(manager->start(id, shell, false));
  AcquireRequest request;
  request.uid = 1000;
  request.process = processes.id_of(processes.spawn({.parent = 1}));
  request.placement.gpus = {kGpu};
  const OwnShell::Parts parts{world->tables, world->rooms, gpus, processes};
  EXPECT_TRUE(check_own_shell(parts, request, {})) << "somebody in another shell";
  const auto said = check_own_shell(parts, request, {id, "--gpus"});
  ASSERT_FALSE(said);
  EXPECT_EQ(said.error().code, Code::kInvalid);
  EXPECT_THAT(said.error().message, ::testing::AllOf(HasSubstr("in whose shell you are, has GPU 0"),
                                                     HasSubstr("leave out --gpus to use it")));
  // A reservation lasts without the shell, so a lease that the caller only names does not count.
  request.kind = LeaseKind::kReservation;
  EXPECT_TRUE(check_own_shell(parts, request, {id, ""}));
  request.process = processes.id_of(shell);
  EXPECT_FALSE(check_own_shell(parts, request, {}));
  // The lease of another user does not count.
  request.kind = LeaseKind::kRun;
  request.uid = 1001;
  EXPECT_TRUE(check_own_shell(parts, request, {id, "--gpus"}));
}

}  // namespace
}  // namespace gpurota::daemon
