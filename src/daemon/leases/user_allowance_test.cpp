#include "daemon/leases/user_allowance.h"

#include "daemon/leases/lease_manager.h"
#include "testing/fake_event_loop.h"
#include "testing/fake_processes.h"

#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;

class UserAllowance : public ::testing::Test {
 protected:
  static GpuTable two_gpus() {
    std::vector<GpuInfo> infos(2);
    infos[0].uuid = {"GPU-0"};
    infos[0].memory = gib(24);
    infos[1].uuid = {"GPU-1"};
    infos[1].memory = gib(80);
    return GpuTable(infos);
  }
  void add(std::uint64_t id, uid_t uid, WallTime since, std::vector<LeaseGpu> shares) {
    LeaseEntry entry(processes);
    entry.lease.id = {id};
    entry.lease.uid = uid;
    entry.lease.since = since;
    entry.lease.gpus = std::move(shares);
    entries.emplace(LeaseId{id}, std::move(entry));
  }

  testing::FakeEventLoop loop;
  testing::FakeProcesses processes{loop};
  GpuTable gpus = two_gpus();
  std::map<LeaseId, LeaseEntry> entries;
};

TEST_F(UserAllowance, CountsSlicesByTheirLimitAndWholeGpusBySize) {
  add(1, 1000, WallTime(0s), {{{"GPU-0"}, gib(8), {}}, {{"GPU-1"}, gib(8), {}}});
  add(2, 1000, WallTime(0s), {{{"GPU-1"}, {}, {}}});
  add(3, 1001, WallTime(0s), {{{"GPU-0"}, gib(4), {}}});
  const auto held = holding_of(1000, entries, gpus, WallTime(0s), WallTime(0s));
  EXPECT_EQ(held.gpus, 3);
  EXPECT_EQ(held.memory, gib(96));
}

TEST_F(UserAllowance, FillersCountOnlyIfTheSiteSaysSo) {
  add(1, 1000, WallTime(0s), {{{"GPU-0"}, {}, {}}});
  entries.at(LeaseId{1}).lease.kind = LeaseKind::kFiller;
  EXPECT_EQ(holding_of(1000, entries, gpus, WallTime(1h), WallTime(0s)).gpus, 0);
  EXPECT_EQ(holding_of(1000, entries, gpus, WallTime(1h), WallTime(0s)).gpu_time, 0s);
  EXPECT_EQ(holding_of(1000, entries, gpus, WallTime(1h), WallTime(0s), true).gpus, 1);
}

TEST_F(UserAllowance, CountsGpuTimeWithinTheWindowOnly) {
  add(1, 1000, WallTime(10h), {{{"GPU-0"}, {}, {}}, {{"GPU-1"}, {}, {}}});
  add(2, 1000, WallTime(90h), {{{"GPU-0"}, {}, {}}});
  add(3, 1000, WallTime(200h), {{{"GPU-0"}, {}, {}}});
  EXPECT_EQ(holding_of(1000, entries, gpus, WallTime(100h), WallTime(50h)).gpu_time, 110h)
      << "two GPUs since the window began, one for ten hours, none from the future";
}

TEST_F(UserAllowance, CountsTheGpuTimeOfASliceAsItsPartOfTheGpu) {
  add(1, 1000, WallTime(0s), {{{"GPU-0"}, gib(6), {}}});
  EXPECT_EQ(holding_of(1000, entries, gpus, WallTime(8h), WallTime(0s)).gpu_time, 2h);
}

TEST_F(UserAllowance, AWholeGpuCountsAsTheLargestUntilItIsNamed) {
  lease::PlacementRequest request;
  request.count = 2;
  EXPECT_EQ(asking_of(request, gpus).memory, gib(160));
  request.gpus = {{"GPU-0"}};
  EXPECT_EQ(asking_of(request, gpus).memory, gib(24));
  EXPECT_EQ(asking_of(request, gpus).gpus, 1);
  request.memory = SizeSpec{{}, 50};
  EXPECT_EQ(asking_of(request, gpus).memory, gib(12));
}

TEST_F(UserAllowance, ABookingCountsItsPartsOfGpus) {
  lease::PlacementRequest request;
  request.count = 2;
  EXPECT_EQ(booked_parts(request, gpus), 2);
  request.memory = SizeSpec{gib(20), 0};
  EXPECT_EQ(booked_parts(request, gpus), 0.5) << "of the largest";
  EXPECT_EQ(booked_parts({GpuUuid{"GPU-0"}}, SizeSpec{gib(6), 0}, gpus), 0.25);
  EXPECT_EQ(machine_parts(gpus), 2);
}

TEST_F(UserAllowance, AMigInstanceIsItsPartOfAGpu) {
  std::vector<GpuInfo> infos(4);
  infos[0].uuid = {"GPU-0"};
  infos[0].memory = gib(80);
  infos[0].mig_enabled = true;
  for (std::size_t i = 1; i < 3; ++i) {
    infos[i].uuid = {"MIG-" + std::to_string(i)};
    infos[i].parent = {"GPU-0"};
    infos[i].memory = gib(20);
  }
  infos[3].uuid = {"GPU-1"};
  infos[3].memory = gib(40);
  const GpuTable mixed(infos);
  EXPECT_EQ(machine_parts(mixed), 1.5);
  EXPECT_EQ(booked_parts({GpuUuid{"MIG-1"}}, {}, mixed), 0.25);
  EXPECT_EQ(booked_parts({GpuUuid{"MIG-1"}}, SizeSpec{{}, 50}, mixed), 0.125);
  lease::PlacementRequest request;
  EXPECT_EQ(booked_parts(request, mixed), 1) << "whole GPUs come first";
}

TEST_F(UserAllowance, AbsurdCountTakesNoTime) {
  lease::PlacementRequest request;
  request.count = INT_MAX;
  EXPECT_EQ(asking_of(request, gpus).gpus, kMaxLeaseGpus);
  request.count = -1;
  EXPECT_EQ(asking_of(request, gpus).gpus, 0);
}

}  // namespace
}  // namespace gpurota::daemon
