#include "lease/ways_out.h"

#include "lease/random_machine_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace gpurota::lease {
namespace {

using namespace std::chrono_literals;
using Kind = WayOut::Kind;

const WallTime kNow{100h};

struct Machine {
  Machine() {
    for (int i = 0; i < 2; ++i) {
      GpuRoom room;
      room.info.index = i;
      room.info.uuid = GpuUuid{"GPU-" + std::to_string(i)};
      room.info.memory = gib(80);
      room.capacity = room.swap_capacity = gib(79);
      rooms.push_back(room);
    }
  }
  // A slice of bob's, or a whole GPU of bob's.
  void lease(int gpu, std::optional<Bytes> limit, std::optional<std::chrono::minutes> left = {}) {
    Occupant occupant;
    occupant.id = LeaseId{leases.size() + 1};
    occupant.user = "bob";
    occupant.gpus = {{GpuUuid{"GPU-" + std::to_string(gpu)}, limit, {}}};
    if (left) occupant.ends = kNow + *left;
    leases.push_back(occupant);
  }
  Request& wait(PlacementRequest placement, std::optional<std::chrono::minutes> lasts = {}) {
    queue.push_back(
        {RequestId{queue.size() + 1}, LeaseKind::kRun, "alice", std::move(placement), lasts});
    return queue.back();
  }
  // The ways out for the last waiting request.
  std::vector<WayOut> ways(bool end_is_kept = true) const {
    return ways_out({queue, rooms, leases, topology}, queue.size() - 1, end_is_kept, kNow);
  }
  const WayOut* way(const std::vector<WayOut>& ways, Kind kind) const {
    for (const WayOut& each : ways) {
      if (each.kind == kind) return &each;
    }
    return nullptr;
  }

  std::vector<GpuRoom> rooms;
  std::vector<Occupant> leases;
  std::vector<Request> queue;
  Topology topology;
};

TEST(WaysOut, RequestThatStartsAnywayGetsNoSuggestions) {
  Machine machine;
  machine.wait({1, {}, SizeSpec{gib(8), 0}, {}});
  EXPECT_TRUE(machine.ways().empty());
}

TEST(WaysOut, SuggestsATimeLimitThatEndsBeforeTheNextUse) {
  Machine machine;
  machine.lease(0, std::nullopt, 30min);
  machine.wait({2, {}, {}, {}}, 60min);
  machine.wait({1, {}, {}, {}});
  const auto ways = machine.ways();
  const WayOut* const way = machine.way(ways, Kind::kTime);
  ASSERT_TRUE(way);
  EXPECT_EQ(way->lasts, 30min);
  EXPECT_THAT(way->gpus, ::testing::ElementsAre(GpuUuid{"GPU-1"}));
  const auto without = machine.ways(false);
  EXPECT_FALSE(machine.way(without, Kind::kTime)) << "the site does not end what is over";
}

TEST(WaysOut, SuggestsASmallerShareOfTheComputeTimeIfOnlyThatIsLacking) {
  Machine machine;
  machine.lease(0, gib(8));
  machine.leases.back().gpus[0].compute.least = 60;
  machine.lease(1, gib(8));
  machine.leases.back().gpus[0].compute.least = 95;
  PlacementRequest placement{1, {}, SizeSpec{gib(8), 0}, {}};
  placement.compute.least = 40;
  machine.wait(placement);
  auto ways = machine.ways();
  ASSERT_EQ(ways.size(), 1u);
  EXPECT_EQ(ways[0].kind, Kind::kCompute);
  EXPECT_EQ(ways[0].compute, 35);
  EXPECT_THAT(ways[0].gpus, ::testing::ElementsAre(GpuUuid{"GPU-0"}));
  EXPECT_EQ(changed(placement, ways[0]).compute.least, 35);
  machine.leases[0].gpus[0].compute.least = 95;
  ways = machine.ways();
  ASSERT_EQ(ways.size(), 1u);
  EXPECT_EQ(ways[0].compute, 0);
}

// The site lets a user have 50 % of each GPU.
TEST(WaysOut, TheLimitOfAUsersSharesCountsOnEachGpu) {
  Machine machine;
  machine.lease(0, gib(8));
  machine.leases.back().gpus[0].compute.least = 30;
  machine.leases.back().uid = 1000;
  PlacementRequest placement{1, {GpuUuid{"GPU-0"}}, SizeSpec{gib(8), 0}, {}};
  placement.compute.least = 40;
  Request& request = machine.wait(placement);
  request.uid = 1000;
  EXPECT_TRUE(machine.ways().empty()) << "there is no limit";
  request.most_compute = 50;
  const auto ways = machine.ways();
  const WayOut* const way = machine.way(ways, Kind::kCompute);
  ASSERT_TRUE(way);
  EXPECT_EQ(way->compute, 20);
  EXPECT_TRUE(machine.way(ways, Kind::kOtherGpus));
  request.uid = 1001;
  EXPECT_TRUE(machine.ways().empty()) << "the share there is another user's";
}

TEST(WaysOut, SuggestedMemoryIsRoundedDown) {
  Machine machine;
  machine.lease(0, gib(70) - mib(100));
  machine.lease(1, gib(79));
  machine.wait({1, {}, SizeSpec{gib(20), 0}, {}});
  const auto ways = machine.ways();
  const WayOut* const way = machine.way(ways, Kind::kMemory);
  ASSERT_TRUE(way);
  EXPECT_EQ(way->memory, gib(9));
}

TEST(WaysOut, SuggestsASliceInsteadOfAWholeGpu) {
  Machine machine;
  machine.lease(0, gib(40));
  machine.lease(1, std::nullopt);
  machine.wait({1, {}, {}, {}});
  const auto ways = machine.ways();
  const WayOut* const way = machine.way(ways, Kind::kMemory);
  ASSERT_TRUE(way);
  EXPECT_EQ(way->memory, gib(39));
}

TEST(WaysOut, SuggestsTurnsOtherGpusOrFewerGpus) {
  Machine machine;
  Occupant other;
  other.id = LeaseId{9};
  other.gpus = {{GpuUuid{"GPU-0"}, gib(70), {}, true, {}}};
  machine.leases.push_back(other);
  machine.rooms[0].swap_needed = gib(70);
  machine.wait({1, {GpuUuid{"GPU-0"}}, SizeSpec{gib(20), 0}, {}});
  auto ways = machine.ways();
  ASSERT_TRUE(machine.way(ways, Kind::kSwap));
  ASSERT_TRUE(machine.way(ways, Kind::kOtherGpus));
  EXPECT_THAT(machine.way(ways, Kind::kOtherGpus)->gpus, ::testing::ElementsAre(GpuUuid{"GPU-1"}));
  machine.queue.clear();
  machine.wait({2, {}, SizeSpec{gib(20), 0}, {}});
  ways = machine.ways();
  ASSERT_TRUE(machine.way(ways, Kind::kCount));
  EXPECT_EQ(machine.way(ways, Kind::kCount)->count, 1);
}

TEST(WaysOut, SuggestsNothingOnAFullMachine) {
  Machine machine;
  machine.lease(0, std::nullopt);
  machine.lease(1, std::nullopt);
  machine.wait({1, {}, SizeSpec{gib(8), 0}, {}});
  EXPECT_TRUE(machine.ways().empty());
}

// A request that follows the advice starts at once, wherever it is in the queue.
TEST(WaysOut, EachSuggestionIsGrantedByTheQueue) {
  std::set<Kind> seen;
  for (std::uint64_t seed = 1; seed <= 600 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    testing::RandomMachine machine(seed);
    machine.queue.push_back(machine.random_request());
    for (std::size_t place = 0; place < machine.queue.size(); ++place) {
      const auto ways = ways_out(machine.view(), place, true, machine.now);
      for (const WayOut& way : ways) {
        std::vector<Request> requests = machine.queue;
        requests[place].placement = changed(requests[place].placement, way);
        if (way.kind == Kind::kTime) requests[place].lasts = way.lasts;
        EXPECT_TRUE(machine.starts(requests, place)) << place << " " << static_cast<int>(way.kind);
        seen.insert(way.kind);
      }
      if (ways.empty()) continue;
      EXPECT_FALSE(machine.starts(machine.queue, place));
    }
  }
  EXPECT_EQ(seen.size(), 5U) << "some kind of change was never offered";
}

}  // namespace
}  // namespace gpurota::lease
