#include "lease/place_test.h"
#include "lease/placement.h"
#include "lease/request_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::lease {
namespace {

using ::testing::HasSubstr;
using testing::place;

const WallTime kNow{std::chrono::hours(100)};

GpuRoom room(int index) {
  GpuRoom room;
  room.info.index = index;
  room.info.uuid = GpuUuid{"GPU-" + std::to_string(index)};
  room.info.memory = gib(80);
  room.capacity = gib(80);
  room.swap_capacity = gib(79);
  return room;
}

PlacementRequest swap(std::optional<Bytes> memory = {}) {
  PlacementRequest request;
  request.swap = true;
  if (memory) request.memory = SizeSpec{*memory, 0};
  return request;
}

PlacementRequest slice(Bytes memory) {
  PlacementRequest request;
  request.memory = SizeSpec{memory, 0};
  return request;
}

// A GPU with leases on it, for the queue.
struct Machine {
  explicit Machine(int count) {
    for (int i = 0; i < count; ++i) rooms.push_back(room(i));
  }
  void add(int gpu, Bytes limit, bool is_swap) {
    const GpuUuid uuid = rooms[static_cast<std::size_t>(gpu)].info.uuid;
    Occupant lease;
    lease.id = LeaseId{++last};
    lease.gpus = {{uuid, limit, std::nullopt, is_swap}};
    leases.push_back(lease);
    GpuRoom& there = rooms[static_cast<std::size_t>(gpu)];
    ++there.leases;
    if (is_swap) {
      ++there.swap_leases;
      there.swap_needed = std::max(there.swap_needed, limit);
    } else {
      there.reserved += limit;
    }
  }
  QueueDecision ask(const std::vector<PlacementRequest>& placements) {
    queue.clear();
    for (const PlacementRequest& placement : placements) {
      queue.push_back({RequestId{queue.size() + 1}, LeaseKind::kRun, "alice", placement, {}});
    }
    return decide({queue, rooms, leases, topology}, kNow);
  }

  std::vector<GpuRoom> rooms;
  std::vector<Occupant> leases;
  std::vector<Request> queue;
  Topology topology;
  std::uint64_t last = 0;
};

TEST(SwapPlacement, DefaultSizeIsAllButUnmovableMemoryOfOthers) {
  Machine machine(1);
  const auto decision = machine.ask({swap()});
  ASSERT_EQ(decision.grants.size(), 1u);
  EXPECT_EQ(decision.grants[0].gpus[0].limit, gib(76));
  EXPECT_TRUE(decision.grants[0].gpus[0].swap);
  EXPECT_EQ((*place(swap(), machine.rooms))[0].limit, gib(76));
}

TEST(SwapPlacement, AnyNumberOfSwapLeasesShareAGpuAndASliceReducesAll) {
  Machine machine(1);
  machine.add(0, gib(76), true);
  EXPECT_EQ(machine.ask({swap(), swap(), swap(gib(70))}).grants.size(), 3u);
  EXPECT_TRUE(machine.ask({slice(gib(10))}).grants.empty());
  EXPECT_EQ(machine.ask({slice(gib(4))}).grants.size(), 1u) << "beside the largest turn";
}

TEST(SwapPlacement, ExistingSlicesMakeTurnsSmaller) {
  Machine machine(1);
  machine.add(0, gib(30), false);
  EXPECT_EQ(machine.ask({swap()}).grants[0].gpus[0].limit, gib(46));
  EXPECT_TRUE(machine.ask({swap(gib(60))}).grants.empty());
  machine.add(0, gib(30), false);
  const auto decision = machine.ask({swap()});
  EXPECT_TRUE(decision.grants.empty()) << "less than half of a GPU is not what was meant";
  EXPECT_EQ(decision.waiting.size(), 1u);
}

TEST(SwapPlacement, SliceGrantedInTheSameDecisionCounts) {
  Machine machine(1);
  const auto decision = machine.ask({slice(gib(20)), swap(), slice(gib(10))});
  ASSERT_EQ(decision.grants.size(), 2u);
  EXPECT_EQ(decision.grants[1].gpus[0].limit, gib(56));
}

PlacementRequest oversize(Bytes memory) {
  PlacementRequest request = swap(memory);
  request.oversize = true;
  return request;
}

TEST(SwapPlacement, ExcessOfAnOversizeLeaseLiesInHostMemory) {
  Machine machine(1);
  LeaseGpu share = machine.ask({oversize(gib(120))}).grants.at(0).gpus.at(0);
  EXPECT_EQ(share.limit, gib(76));
  EXPECT_EQ(share.oversize, gib(44));
  share = place(oversize(gib(60)), machine.rooms)->at(0);
  EXPECT_EQ(share.limit, gib(60));
  EXPECT_EQ(share.oversize, Bytes()) << "it fits";
  EXPECT_FALSE(place(swap(gib(120)), machine.rooms)) << "not without having said so";
}

TEST(SwapPlacement, AnOversizeLeaseWaitsForHalfOfTheGpuAndNotForMore) {
  Machine machine(1);
  machine.add(0, gib(30), false);
  const LeaseGpu share = machine.ask({oversize(gib(120))}).grants.at(0).gpus.at(0);
  EXPECT_EQ(share.limit, gib(46));
  EXPECT_EQ(share.oversize, gib(74));
  machine.add(0, gib(30), false);
  EXPECT_TRUE(machine.ask({oversize(gib(120))}).grants.empty());
}

TEST(SwapPlacement, OversizeLeaseMustNameItsSize) {
  Machine machine(1);
  PlacementRequest request = swap();
  request.oversize = true;
  EXPECT_EQ(impossible(request, machine.rooms)->error.code, Code::kInvalid);
}

TEST(SwapPlacement, PrefersTheGpuWithFewestOthersInTurns) {
  Machine machine(3);
  machine.add(0, gib(40), true);
  machine.add(1, gib(20), false);
  EXPECT_EQ((*place(swap(), machine.rooms))[0].uuid, machine.rooms[2].info.uuid);
  machine.add(2, gib(40), true);
  EXPECT_EQ((*place(swap(), machine.rooms))[0].uuid, machine.rooms[1].info.uuid);
}

TEST(SwapPlacement, ExclusiveLeaseAndTurnsNeverShareAGpu) {
  Machine machine(1);
  machine.add(0, gib(40), true);
  EXPECT_TRUE(machine.ask({PlacementRequest{}}).grants.empty());
  EXPECT_EQ(place(PlacementRequest{}, machine.rooms).error().error.code, Code::kNoGpu);
}

TEST(SwapPlacement, UnmovableMemoryOfOthersReducesATurn) {
  Machine machine(1);
  machine.add(0, gib(40), true);
  machine.rooms[0].swap_wired = gib(6);
  EXPECT_EQ(machine.ask({swap()}).grants[0].gpus[0].limit, gib(73));
  const auto refused = place(swap(gib(75)), machine.rooms);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().error.code, Code::kNoGpu);
  EXPECT_THAT(refused.error().error.message, HasSubstr("for a swap lease"));
}

TEST(SwapPlacement, MoreThanTheGpuHasIsRefusedForGood) {
  Machine machine(1);
  EXPECT_EQ(place(swap(gib(80)), machine.rooms).error().error.code, Code::kLimit);
}

TEST(SwapPlacement, SoftLimitLiesBelowTheLimitOrTheCapacity) {
  Machine machine(1);
  PlacementRequest soft = swap(gib(20));
  soft.soft_limit = SizeSpec{gib(10), 0};
  EXPECT_EQ(place(soft, machine.rooms)->front().soft_limit, gib(10));
  soft.soft_limit = SizeSpec{gib(30), 0};
  EXPECT_EQ(place(soft, machine.rooms).error().error.code, Code::kInvalid);
  soft.memory.reset();
  EXPECT_EQ(place(soft, machine.rooms)->front().soft_limit, gib(30));
  soft.soft_limit = SizeSpec{gib(200), 0};
  EXPECT_EQ(place(soft, machine.rooms).error().error.code, Code::kInvalid);
  PlacementRequest slice;
  slice.soft_limit = SizeSpec{gib(10), 0};
  EXPECT_EQ(place(slice, machine.rooms).error().error.code, Code::kInvalid) << "it has no limit";
}

}  // namespace
}  // namespace gpurota::lease
