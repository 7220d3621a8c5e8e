#include "daemon/watch/lease_fences.h"

#include "daemon/gpus/fake_world_test.h"
#include "daemon/leases/lease_world_test.h"
#include "testing/memory_store.h"

#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;
using testing::MemoryStore;

class LeaseFencesTest : public FakeWorldTest {
 protected:
  // Starts a lease with a command in a control group of its own, and returns that group.
  std::string start_one() {
    AcquireRequest request;
    request.uid = 1000;
    request.process = processes.id_of(processes.spawn());
    request.placement.memory = SizeSpec{gib(1), 0};
    const LeaseId id = (*world.queue.acquire(request))->lease.id;
    return **leases.start(id, processes.spawn({.parent = request.process.pid}), false);
  }
  void apply() {
    fences.apply([this](const Lease& lease) -> DeviceFences {
      return {{195, 0, 247, {static_cast<unsigned>(lease.id.value), extra}}};
    });
  }
  DeviceFences only(unsigned lease) const { return {{195, 0, 247, {lease, extra}}}; }

  MemoryStore store;
  lease::GrantBook grants;
  LeaseWorld world{loop, store, processes, gpus, grants, config, [] { return WallTime(1s); }};
  LeaseManager& leases = world.leases;
  LeaseFences fences{processes, world.tables};
  unsigned extra = 100;
};

TEST_F(LeaseFencesTest, EachLeaseHasItsOwnFences) {
  const std::string first = start_one(), second = start_one();
  apply();
  EXPECT_EQ(processes.cgroups().fences_of(first), only(1));
  EXPECT_EQ(processes.cgroups().fences_of(second), only(2));
  EXPECT_EQ(fences.trouble(), "");
}

TEST_F(LeaseFencesTest, FollowsTheGpusOfALease) {
  const std::string cgroup = start_one();
  apply();
  extra = 101;
  apply();
  EXPECT_EQ(processes.cgroups().fences_of(cgroup), only(1));
}

TEST_F(LeaseFencesTest, RemovesFencesOfAnEarlierDaemonToo) {
  const std::string cgroup = start_one();
  apply();
  LeaseFences next(processes, world.tables);
  next.lift();
  EXPECT_TRUE(processes.cgroups().fences_of(cgroup).empty());
}

// A fence that is set for another lease does not clear the trouble of the first lease, which still
// has no fence.
TEST_F(LeaseFencesTest, FailureToFenceIsReportedUntilFencedOrGone) {
  (void)start_one();
  processes.cgroups().set_fences_available(false);
  apply();
  EXPECT_EQ(fences.trouble(), "no capability");
  processes.cgroups().set_fences_available(true);
  const std::string later = start_one();
  apply();
  EXPECT_EQ(processes.cgroups().fences_of(later), only(2));
  EXPECT_EQ(fences.trouble(), "no capability");
  extra = 101;
  apply();
  EXPECT_EQ(fences.trouble(), "");
}

TEST_F(LeaseFencesTest, ALeaseWithoutAControlGroupIsLeftOut) {
  processes.cgroups().set_available(false);
  AcquireRequest request;
  request.process = processes.id_of(processes.spawn());
  request.placement.memory = SizeSpec{gib(1), 0};
  ASSERT_TRUE(world.queue.acquire(request));
  apply();
  EXPECT_EQ(fences.trouble(), "");
}

}  // namespace
}  // namespace gpurota::daemon
