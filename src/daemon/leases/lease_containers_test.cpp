#include "daemon/leases/lease_containers.h"

#include "daemon/gpus/fake_world_test.h"
#include "daemon/leases/attribution.h"
#include "daemon/leases/lease_world_test.h"
#include "testing/memory_store.h"

#include <gtest/gtest.h>

#include <csignal>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;

const std::string kGroup = "/sys/fs/cgroup/machine.slice/libpod-" + std::string(64, 'a') + ".scope";
const std::string kOther = "/sys/fs/cgroup/machine.slice/libpod-" + std::string(64, 'b') + ".scope";

class LeaseContainersTest : public FakeWorldTest {
 protected:
  LeaseContainersTest() { restart(); }

  void restart() {
    world.reset();
    grants.emplace();
    world.emplace(loop, store, processes, gpus, *grants, config, [] { return WallTime(1s); });
    ASSERT_TRUE(world->leases.restore());
  }

  // A lease whose command runs in `cgroup`; empty: outside of all containers.
  LeaseId make_lease(const std::string& cgroup = {}) {
    AcquireRequest request;
    request.uid = 1000;
    request.process = processes.id_of(processes.spawn({.cgroup = cgroup}));
    request.placement.memory = SizeSpec{gib(8), 0};
    return (*world->queue.acquire(request))->lease.id;
  }
  pid_t spawn_in(const std::string& group, uid_t uid = 0) {
    return processes.spawn({.uid = uid, .cgroup = group + "/container"});
  }
  std::optional<LeaseId> owner_of(pid_t pid) {
    return Attribution(processes, world->tables).owner_of(pid).lease;
  }
  Result<void> join(LeaseId id, pid_t pid) {
    return world->leases.add_process(id, processes.id_of(pid));
  }

  testing::MemoryStore store;
  std::optional<lease::GrantBook> grants;
  std::optional<LeaseWorld> world;
};

TEST_F(LeaseContainersTest, OtherProcessesOfAJoinedContainerAreInTheLease) {
  const LeaseId id = make_lease();
  const pid_t other = spawn_in(kGroup);
  const pid_t elsewhere = spawn_in(kOther);
  EXPECT_FALSE(owner_of(other));
  ASSERT_TRUE(join(id, spawn_in(kGroup)));
  EXPECT_EQ(owner_of(other), id);
  EXPECT_FALSE(owner_of(elsewhere));
}

TEST_F(LeaseContainersTest, ARestartForgetsNoContainer) {
  const LeaseId id = make_lease();
  const pid_t joined = spawn_in(kGroup);
  ASSERT_TRUE(join(id, joined));
  restart();
  EXPECT_EQ(owner_of(joined), id);
  EXPECT_EQ(owner_of(spawn_in(kGroup)), id);
  // After a reboot another container may have a group of this name.
  processes.set_boot_id("other");
  restart();
  EXPECT_FALSE(owner_of(joined));
}

TEST_F(LeaseContainersTest, OtherUsersOfASharedContainerAreNotInTheLease) {
  const LeaseId id = make_lease();
  const pid_t others = spawn_in(kGroup, 1002);
  ASSERT_TRUE(join(id, spawn_in(kGroup, 1001)));
  EXPECT_FALSE(owner_of(others));
  EXPECT_EQ(owner_of(spawn_in(kGroup, 1001)), id);
}

TEST_F(LeaseContainersTest, ProcessThatNamedItsLeaseIsInThatLease) {
  const LeaseId first = make_lease();
  const LeaseId second = make_lease();
  ASSERT_TRUE(join(first, spawn_in(kGroup)));
  const pid_t own = spawn_in(kGroup);
  ASSERT_TRUE(join(second, own));
  EXPECT_EQ(owner_of(own), second);
}

TEST_F(LeaseContainersTest, ContainerWhereTheLeaseWasMadeIsNotWhollyInIt) {
  const LeaseId id = make_lease(kGroup);
  const pid_t joined = spawn_in(kGroup);
  ASSERT_TRUE(join(id, joined));
  EXPECT_EQ(owner_of(joined), id);
  EXPECT_FALSE(owner_of(spawn_in(kGroup)));
}

TEST_F(LeaseContainersTest, GroupThatAnotherContainerMayReuseIsNotTaken) {
  const LeaseId id = make_lease();
  const std::string lxc = "/sys/fs/cgroup/lxc.payload.web";
  ASSERT_TRUE(join(id, spawn_in(lxc)));
  EXPECT_FALSE(owner_of(spawn_in(lxc)));
}

TEST_F(LeaseContainersTest, LeaseHasABoundedNumberOfContainers) {
  const LeaseId id = make_lease();
  for (std::size_t i = 0; i < kMostContainers + 5; ++i) {
    std::string name(64, '0');
    name.replace(0, 4, std::to_string(1000 + i));
    ASSERT_TRUE(join(id, spawn_in("/sys/fs/cgroup/docker/" + name)));
  }
  EXPECT_EQ(world->tables.find(id)->containers.size(), kMostContainers);
}

TEST_F(LeaseContainersTest, AProcessThatCannotBeHeldIsNotAdded) {
  const LeaseId id = make_lease();
  const pid_t pid = spawn_in(kGroup);
  processes.set_short(true);
  const auto joined = join(id, pid);
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code, Code::kLimit);
  processes.set_short(false);
  EXPECT_FALSE(owner_of(pid));
}

TEST_F(LeaseContainersTest, GroupMadeByAUserIsNoContainerOfRootsEngine) {
  EXPECT_EQ(find_roots_container(processes, spawn_in(kGroup))->group, kGroup);
  processes.cgroups().set_made_by_user(kOther);
  EXPECT_FALSE(find_roots_container(processes, spawn_in(kOther)));
  // A group that a user makes inside a container of root's engine still counts as inside it.
  const std::string inner = kGroup + "/libpod-" + std::string(64, 'c');
  processes.cgroups().set_made_by_user(inner);
  EXPECT_EQ(find_roots_container(processes, spawn_in(inner))->group, kGroup);
}

TEST_F(LeaseContainersTest, EndedContainersHoldNoDescriptors) {
  const LeaseId id = make_lease();
  for (int i = 0; i < 1000; ++i) {
    const pid_t pid = spawn_in(kGroup);
    ASSERT_TRUE(join(id, pid));
    processes.die(pid);
  }
  EXPECT_LT(processes.open_handles(), 200u);
}

}  // namespace
}  // namespace gpurota::daemon
