#include "daemon/watch/lease_groups.h"

#include "testing/fake_event_loop.h"
#include "testing/fake_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace gpurota::daemon {
namespace {

using ::testing::ElementsAre;

class LeaseGroupsTest : public ::testing::Test {
 protected:
  LeaseEntry& add(std::uint64_t id) {
    LeaseEntry& entry = tables.leases.emplace(LeaseId{id}, LeaseEntry(processes)).first->second;
    entry.lease.id = LeaseId{id};
    return entry;
  }
  void add_command(LeaseEntry& entry, pid_t pid, const std::string& group) {
    LeaseCommand command(processes);
    command.members.set_root(std::nullopt, group, std::nullopt);
    entry.commands.emplace(pid, std::move(command));
  }
  // Returns the container's process.
  pid_t add_container(LeaseEntry& entry, const std::string& group) {
    entry.containers.push_back({1000, group});
    return processes.spawn({.uid = 1000, .cgroup = group});
  }

  testing::FakeEventLoop loop;
  testing::FakeProcesses processes{loop};
  LeaseTables tables;
  GroupChooser chooser{loop, tables, processes};
};

TEST_F(LeaseGroupsTest, GroupsBelowAnotherOneCountOnce) {
  LeaseEntry& entry = add(1);
  add_command(entry, 7, "/user/gpurota-L1-7/gpurota-L1-9");
  entry.members.set_root(std::nullopt, "/user/gpurota-L1-7", std::nullopt);
  add_command(entry, 8, "/user/gpurota-L1-8");
  entry.containers = {{1000, "/user/gpurota-L1-7/libpod-a"}, {1000, "/engine/b"}};
  const LeaseGroups groups = groups_of(entry, "");
  EXPECT_THAT(groups.commands, ElementsAre("/user/gpurota-L1-7", "/user/gpurota-L1-8"));
  EXPECT_THAT(groups.containers, ElementsAre("/engine/b"));
}

TEST_F(LeaseGroupsTest, TheChoiceStaysAmongCommands) {
  LeaseEntry& entry = add(1);
  EXPECT_EQ(chooser.choose(entry, "").group, "");
  add_command(entry, 8, "/user/gpurota-L1-8");
  add_command(entry, 7, "/user/gpurota-L1-7");
  EXPECT_EQ(chooser.choose(entry, "/user/gpurota-L1-8").group, "/user/gpurota-L1-8");
  EXPECT_EQ(chooser.choose(entry, "/gone").group, "/user/gpurota-L1-7");
  EXPECT_EQ(chooser.choose(entry, "").groups, 2U);
}

TEST_F(LeaseGroupsTest, AContainerIsChosenUnlessThereAreSeveral) {
  LeaseEntry& entry = add(1);
  entry.members.set_root(std::nullopt, "/user/gpurota-L1-7", std::nullopt);
  const pid_t first = add_container(entry, "/engine/a");
  EXPECT_EQ(chooser.choose(entry, "/user/gpurota-L1-7").group, "/engine/a");
  EXPECT_EQ(chooser.choose(entry, "").kind, GroupKind::kContainer);
  add_container(entry, "/engine/b");
  EXPECT_EQ(chooser.choose(entry, "/engine/a").group, "/user/gpurota-L1-7");
  processes.die(first);
  EXPECT_EQ(chooser.choose(entry, "/user/gpurota-L1-7").group, "/engine/b")
      << "the first container has ended";
}

TEST_F(LeaseGroupsTest, APodsGroupIsChosenBeforeItHasContainersAndHoldsThem) {
  LeaseEntry& entry = add(1);
  entry.pod_uid = "1b-2";
  EXPECT_EQ(chooser.choose(entry, "").group, "");
  const std::string pod =
      std::string(testing::FakeControlGroups::kRoot) +
      "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1b_2.slice";
  processes.cgroups().add(pod);
  EXPECT_EQ(chooser.choose(entry, "").group, pod);
  EXPECT_EQ(chooser.choose(entry, "").kind, GroupKind::kPod);
  add_container(entry, pod + "/cri-containerd-a.scope");
  EXPECT_EQ(chooser.choose(entry, pod).groups, 1U);
  processes.spawn({.uid = 1001, .cgroup = pod + "/cri-containerd-a.scope"});
  EXPECT_EQ(chooser.choose(entry, pod).group, pod) << "whoever the users in the pod are";
  add_container(entry, "/kubepods.slice/other");
  EXPECT_EQ(chooser.choose(entry, pod).group, pod);
  EXPECT_EQ(chooser.choose(entry, pod).groups, 2U);
}

TEST_F(LeaseGroupsTest, AContainerOfTwoLeasesOrTwoUsersIsNobodys) {
  LeaseEntry& entry = add(1);
  add_container(entry, "/engine/a");
  EXPECT_EQ(chooser.choose(entry, "").group, "/engine/a");
  LeaseEntry& other = add(2);
  add_command(other, 9, "/engine/a/gpurota-L2-9");
  chooser.read_groups();
  EXPECT_EQ(chooser.choose(entry, "").group, "");
  EXPECT_TRUE(chooser.choose(entry, "").shared);
  other.commands.clear();
  chooser.read_groups();
  EXPECT_EQ(chooser.choose(entry, "").group, "/engine/a");
  processes.spawn({.uid = 1001, .cgroup = "/engine/a"});
  EXPECT_EQ(chooser.choose(entry, "").group, "/engine/a") << "as read a moment ago";
  loop.advance(GroupChooser::kFresh);
  EXPECT_EQ(chooser.choose(entry, "").group, "");
}

}  // namespace
}  // namespace gpurota::daemon
