#include "daemon/history/lease_loads.h"

#include "testing/fake_event_loop.h"
#include "testing/fake_processes.h"

#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

using Loads = std::optional<std::map<LeaseId, int>>;

class LeaseLoadsTest : public ::testing::Test {
 protected:
  LeaseLoadsTest() {
    gpu.info.uuid = {"GPU-1"};
    gpu.sample.load_percent = 80;
    gpu.sample.processes = {{10, gib(1)}, {20, gib(1)}};
    lease(1);
    lease(2);
  }
  void lease(std::uint64_t id) {
    LeaseEntry& entry = leases.emplace(LeaseId{id}, processes).first->second;
    entry.lease.id = {id};
    entry.lease.gpus = {{gpu.info.uuid, gib(2), std::nullopt}};
  }
  Loads loads(std::map<pid_t, LeaseId> owners) const { return lease_loads(gpu, leases, owners); }

  testing::FakeEventLoop loop;
  testing::FakeProcesses processes{loop};
  GpuEntry gpu;
  std::map<LeaseId, LeaseEntry> leases;
};

TEST_F(LeaseLoadsTest, OnlyLeaseWithProcessesHasTheWholeLoad) {
  EXPECT_EQ(loads({{10, {1}}, {20, {1}}}), (Loads{{{{1}, 80}, {{2}, 0}}}));
}

TEST_F(LeaseLoadsTest, LoadIsDividedByTheLoadsOfProcesses) {
  gpu.figures.processes = {{10, 60}, {20, 20}};
  EXPECT_EQ(loads({{10, {1}}, {20, {2}}}), (Loads{{{{1}, 60}, {{2}, 20}}}));
  // A process without a lease takes its part of the load, too.
  EXPECT_EQ(loads({{20, {2}}}), (Loads{{{{1}, 0}, {{2}, 20}}}));
}

TEST_F(LeaseLoadsTest, UnknownLoadIsNotEstimated) {
  EXPECT_EQ(loads({{10, {1}}, {20, {2}}}), std::nullopt);
  EXPECT_EQ(loads({{10, {1}}}), std::nullopt) << "the other process is nobody's";
  gpu.figures.processes = {{10, 0}, {20, 0}};
  EXPECT_EQ(loads({{10, {1}}, {20, {2}}}), std::nullopt);
  gpu.sample.load_percent.reset();
  EXPECT_EQ(loads({{10, {1}}, {20, {1}}}), std::nullopt);
}

TEST_F(LeaseLoadsTest, AllLeasesAreIdleIfNothingComputes) {
  gpu.sample.load_percent = 0;
  EXPECT_EQ(loads({{10, {1}}, {20, {2}}}), (Loads{{{{1}, 0}, {{2}, 0}}}));
  gpu.sample.load_percent = 50;
  gpu.sample.processes.clear();
  EXPECT_EQ(loads({}), (Loads{{{{1}, 0}, {{2}, 0}}}));
}

}  // namespace
}  // namespace gpurota::daemon
