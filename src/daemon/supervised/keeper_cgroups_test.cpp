#include "daemon/supervised/keeper_cgroups.h"

#include "daemon/gpus/fake_world_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;
using ::testing::StartsWith;

class KeeperCgroupsTest : public FakeWorldTest {
 protected:
  KeeperCgroupsTest() { processes.cgroups().put(::getpid(), "/daemon", 0); }
  // A keeper that has entered its group.
  pid_t start(KeeperCgroups& of, const std::string& run) {
    const std::string group = of.name(run);
    const pid_t keeper = processes.spawn();
    if (!group.empty()) processes.cgroups().put(keeper, group, 0);
    of.note(keeper, group);
    return keeper;
  }

  KeeperCgroups groups{loop, processes};
};

TEST_F(KeeperCgroupsTest, ProcessesOfAKeeperAreInItsGroup) {
  const pid_t keeper = start(groups, "job-7");
  const std::string group = processes.cgroups().of(keeper);
  EXPECT_THAT(group, StartsWith("/daemon/gpurota-keeper-job-7-"));
  EXPECT_EQ(processes.cgroups().of(processes.spawn({1000, keeper})), group);
}

TEST_F(KeeperCgroupsTest, JobOfAnotherDaemonWithTheSameNumberHasItsOwnGroup) {
  KeeperCgroups others{loop, processes};
  const pid_t keeper = start(groups, "job-7");
  loop.pass(1ms);
  const pid_t theirs = start(others, "job-7");
  EXPECT_NE(processes.cgroups().of(keeper), processes.cgroups().of(theirs));
}

TEST_F(KeeperCgroupsTest, GroupIsRemovedAfterItsLastProcess) {
  const pid_t keeper = start(groups, "job-7");
  const std::string group = processes.cgroups().of(keeper);
  const pid_t stray = processes.spawn({1000, keeper});
  processes.die(keeper);
  groups.on_end(keeper);
  loop.advance(3s);
  EXPECT_TRUE(processes.cgroups().exists(group));
  EXPECT_TRUE(processes.alive(stray)) << "its end is that of its lease";
  processes.die(stray);
  loop.advance(2s);
  EXPECT_FALSE(processes.cgroups().exists(group));
  EXPECT_EQ(groups.left_behind(), 0U);
}

TEST_F(KeeperCgroupsTest, ANewDaemonTidiesUpAfterTheKeepersThatItFinds) {
  const pid_t keeper = start(groups, "job-7");
  const std::string group = processes.cgroups().of(keeper);
  KeeperCgroups next{loop, processes};
  next.take_up(keeper);
  processes.die(keeper);
  next.on_end(keeper);
  loop.advance(1ms);
  EXPECT_FALSE(processes.cgroups().exists(group));
}

TEST_F(KeeperCgroupsTest, ManyGroupsAreRemoved) {
  std::vector<pid_t> keepers;
  for (int i = 0; i < 50; ++i) keepers.push_back(start(groups, "job-" + std::to_string(i)));
  for (const pid_t keeper : keepers) {
    processes.die(keeper);
    groups.on_end(keeper);
  }
  EXPECT_EQ(groups.left_behind(), 50U) << "not while others wait for the loop";
  loop.advance(1ms);
  EXPECT_EQ(groups.left_behind(), 0U);
}

TEST_F(KeeperCgroupsTest, GroupThatCannotBeRemovedYetIsTriedAgain) {
  const pid_t keeper = start(groups, "job-7");
  const std::string group = processes.cgroups().of(keeper);
  processes.die(keeper);
  processes.cgroups().set_moves_wait(true);
  groups.on_end(keeper);
  loop.advance(1ms);
  const pid_t late = processes.spawn();
  processes.cgroups().put(late, group, 0);
  processes.cgroups().set_moves_wait(false);
  processes.cgroups().finish_moves();
  EXPECT_TRUE(processes.cgroups().exists(group));
  EXPECT_EQ(groups.left_behind(), 1U);
  processes.die(late);
  loop.advance(2s);
  EXPECT_FALSE(processes.cgroups().exists(group));
}

TEST_F(KeeperCgroupsTest, RemovalMayEndAfterTheDaemonsPartHasEnded) {
  auto mine = std::make_unique<KeeperCgroups>(loop, processes);
  const pid_t keeper = start(*mine, "job-7");
  processes.cgroups().set_moves_wait(true);
  processes.die(keeper);
  mine->on_end(keeper);
  loop.advance(1ms);
  mine.reset();
  processes.cgroups().finish_moves();
}

TEST_F(KeeperCgroupsTest, ForeignGroupIsLeftAlone) {
  const pid_t shell = processes.spawn();
  groups.take_up(shell);
  processes.die(shell);
  groups.on_end(shell);
  EXPECT_EQ(groups.left_behind(), 0U);
}

TEST_F(KeeperCgroupsTest, WithoutControlGroupsThereAreNone) {
  processes.cgroups().forget(::getpid());
  const pid_t keeper = start(groups, "job-7");
  groups.on_end(keeper);
  EXPECT_EQ(groups.left_behind(), 0U);
}

}  // namespace
}  // namespace gpurota::daemon
