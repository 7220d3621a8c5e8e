// Fillers that can be moved out of their GPU, in the queue.
#include "lease/request_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::lease {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const WallTime kNow{std::chrono::hours(100)};
const GpuUuid kGpu{"GPU-0"};
constexpr LeaseId kFiller{7};

// One GPU of 80 GiB with a filler on it, of which 1 GiB would stay.
struct Machine {
  Machine() {
    GpuRoom room;
    room.info.uuid = kGpu;
    room.info.memory = room.capacity = gib(80);
    room.swap_capacity = gib(79);
    rooms = {room};
    Occupant filler;
    filler.id = kFiller;
    filler.kind = LeaseKind::kFiller;
    filler.gpus = {{kGpu, gib(70), std::nullopt, true}};
    filler.stays = gib(1);
    leases = {filler};
  }
  Occupant& filler() { return leases.front(); }
  void add(Bytes slice) {
    Occupant lease;
    lease.id = LeaseId{20 + leases.size()};
    lease.gpus = {{kGpu, slice, std::nullopt, false}};
    leases.push_back(lease);
  }
  void ask(const PlacementRequest& placement, LeaseKind kind = LeaseKind::kRun) {
    queue.push_back({RequestId{queue.size() + 1}, kind, "alice", placement, {}});
  }
  void slice(Bytes memory) {
    PlacementRequest request;
    request.memory = SizeSpec{memory, 0};
    ask(request);
  }
  void swap(std::optional<Bytes> memory = {}) {
    PlacementRequest request;
    request.swap = true;
    if (memory) request.memory = SizeSpec{*memory, 0};
    ask(request);
  }
  QueueDecision decide() const { return lease::decide({queue, rooms, leases, topology}, kNow); }

  std::vector<GpuRoom> rooms;
  std::vector<Occupant> leases;
  std::vector<Request> queue;
  Topology topology;
};

TEST(MovableFiller, MovesOutForARequestThatFitsBesideItsRemainder) {
  Machine machine;
  machine.slice(gib(79));
  const QueueDecision decision = machine.decide();
  EXPECT_THAT(decision.move_out, ElementsAre(kFiller));
  EXPECT_THAT(decision.evict, IsEmpty());
  EXPECT_THAT(decision.grants, IsEmpty()) << "not before it is out";
  EXPECT_TRUE(decision.waiting.at(0).way_made);
}

TEST(MovableFiller, EndsForARequestThatDoesNotFitBesideItsRemainder) {
  Machine machine;
  machine.slice(gib(80));
  EXPECT_THAT(machine.decide().evict, ElementsAre(kFiller));
  EXPECT_THAT(machine.decide().move_out, IsEmpty());
}

TEST(MovableFiller, EndsForARequestForTheWholeGpu) {
  Machine machine;
  machine.ask({});
  EXPECT_THAT(machine.decide().evict, ElementsAre(kFiller));
  EXPECT_THAT(machine.decide().move_out, IsEmpty());
}

TEST(MovableFiller, EndsIfItCannotBeMoved) {
  Machine machine;
  machine.filler().stays.reset();
  machine.slice(gib(8));
  EXPECT_THAT(machine.decide().evict, ElementsAre(kFiller));
}

TEST(MovableFiller, MovedFillerBlocksNoRequestThatFits) {
  Machine machine;
  machine.filler().moved_out = true;
  machine.slice(gib(50));
  machine.slice(gib(29));
  EXPECT_EQ(machine.decide().grants.size(), 2U);
  machine.slice(gib(1));
  const QueueDecision decision = machine.decide();
  EXPECT_EQ(decision.grants.size(), 2U);
  EXPECT_THAT(decision.evict, ElementsAre(kFiller)) << "without it there is room for the third";
}

TEST(MovableFiller, MovedFillerEndsForTheWholeGpuOnlyIfItIsTheLast) {
  Machine machine;
  machine.filler().moved_out = true;
  machine.ask({});
  EXPECT_THAT(machine.decide().evict, ElementsAre(kFiller));
  machine.add(gib(8));
  EXPECT_THAT(machine.decide().evict, IsEmpty());
  EXPECT_EQ(machine.decide().waiting.size(), 1U);
}

TEST(MovableFiller, SwapLeaseGetsTheMemoryThatAMovedFillerLeaves) {
  Machine machine;
  machine.swap();
  EXPECT_THAT(machine.decide().move_out, ElementsAre(kFiller));
  machine.filler().moved_out = true;
  const QueueDecision decision = machine.decide();
  ASSERT_EQ(decision.grants.size(), 1U);
  EXPECT_EQ(decision.grants[0].gpus[0].limit, gib(75));
}

TEST(MovableFiller, NoOtherFillerSharesItsGpu) {
  Machine machine;
  machine.filler().moved_out = true;
  machine.ask({}, LeaseKind::kFiller);
  EXPECT_THAT(machine.decide().grants, IsEmpty());
  EXPECT_THAT(machine.decide().evict, IsEmpty());
}

TEST(MovableFiller, NoLeaseIsPlacedBesideAnEndingFiller) {
  Machine machine;
  machine.filler().moved_out = true;
  machine.filler().ending = true;
  machine.slice(gib(8));
  EXPECT_THAT(machine.decide().grants, IsEmpty());
  EXPECT_THAT(machine.decide().evict, IsEmpty());
  EXPECT_TRUE(machine.decide().waiting.at(0).way_made);
}

}  // namespace
}  // namespace gpurota::lease
