#include "daemon/supervised/keeper_cgroups.h"

#include "daemon/gpus/fake_world_test.h"

#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;

class KeeperCgroupsTest : public FakeWorldTest {
 protected:
  KeeperCgroups groups{loop, processes};
};

TEST_F(KeeperCgroupsTest, WhatAKeeperStartsIsInItsGroup) {
  const pid_t keeper = processes.spawn();
  groups.make(keeper, "job-7");
  const std::string group = processes.cgroups().of(keeper);
  EXPECT_TRUE(group.ends_with("/gpurota-keeper-job-7-" + std::to_string(keeper))) << group;
  EXPECT_EQ(processes.cgroups().of(processes.spawn({1000, keeper})), group);
}

TEST_F(KeeperCgroupsTest, AnotherDaemonsJobOfTheSameNumberHasItsOwn) {
  KeeperCgroups others{loop, processes};
  const pid_t keeper = processes.spawn();
  const pid_t theirs = processes.spawn();
  groups.make(keeper, "job-7");
  others.make(theirs, "job-7");
  EXPECT_NE(processes.cgroups().of(keeper), processes.cgroups().of(theirs));
}

TEST_F(KeeperCgroupsTest, TheGroupGoesWhenTheLastOfItHasGone) {
  const pid_t keeper = processes.spawn();
  groups.make(keeper, "job-7");
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
  const pid_t keeper = processes.spawn();
  groups.make(keeper, "job-7");
  const std::string group = processes.cgroups().of(keeper);
  KeeperCgroups next{loop, processes};
  next.take_up(keeper);
  processes.die(keeper);
  next.on_end(keeper);
  EXPECT_FALSE(processes.cgroups().exists(group));
}

TEST_F(KeeperCgroupsTest, AGroupThatIsNoneOfOursIsLeftAlone) {
  const pid_t shell = processes.spawn();
  groups.take_up(shell);
  processes.die(shell);
  groups.on_end(shell);
  EXPECT_EQ(groups.left_behind(), 0U);
}

TEST_F(KeeperCgroupsTest, WithoutWritableControlGroupsThereAreNone) {
  processes.cgroups().set_available(false);
  const pid_t keeper = processes.spawn();
  groups.make(keeper, "job-7");
  groups.on_end(keeper);
  EXPECT_EQ(groups.left_behind(), 0U);
}

}  // namespace
}  // namespace gpurota::daemon
