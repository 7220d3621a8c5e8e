#include "lease/placement.h"

#include "lease/place_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::lease {
namespace {

using ::testing::HasSubstr;
using testing::place;

GpuRoom room(int index) {
  GpuRoom room;
  room.info.index = index;
  room.info.uuid = GpuUuid{"GPU-" + std::to_string(index)};
  room.info.memory = gib(24);
  room.capacity = gib(24) - mib(400);
  return room;
}

GpuRoom shared(int index, Bytes reserved) {
  GpuRoom r = room(index);
  r.reserved = reserved;
  r.leases = 1;
  r.holders = "alice (L3)";
  return r;
}

PlacementRequest slice(Bytes size, int count = 1) {
  return {count, {}, SizeSpec{size, 0}, std::nullopt};
}

std::vector<std::string> uuids(const std::vector<LeaseGpu>& gpus) {
  std::vector<std::string> list;
  for (const LeaseGpu& gpu : gpus) list.push_back(gpu.uuid.value);
  return list;
}

TEST(Placement, AnExclusiveLeaseTakesTheGpuThatHasBeenIdleLongest) {
  auto rooms = std::vector{room(0), room(1)};
  rooms[0].idle_since = WallTime(std::chrono::seconds(100));
  rooms[1].idle_since = WallTime(std::chrono::seconds(50));
  EXPECT_EQ(uuids(*place({}, rooms)), (std::vector<std::string>{"GPU-1"}));
}

TEST(Placement, ASliceGoesWhereItFitsBest) {
  const auto rooms = std::vector{room(0), shared(1, gib(12)), shared(2, gib(20))};
  EXPECT_EQ(uuids(*place(slice(gib(8)), rooms)), (std::vector<std::string>{"GPU-1"}));
  EXPECT_EQ(uuids(*place(slice(gib(2)), rooms)), (std::vector<std::string>{"GPU-2"}));
  EXPECT_EQ(uuids(*place(slice(gib(20)), rooms)), (std::vector<std::string>{"GPU-0"}));
}

TEST(Placement, ExclusiveLeaseAndSliceNeverShareAGpu) {
  auto taken = room(0);
  taken.exclusive = true;
  taken.leases = 1;
  taken.holders = "bob (L1)";
  const auto refused = place(slice(gib(1)), {taken});
  EXPECT_EQ(refused.error().error.code, Code::kNoGpu);
  EXPECT_THAT(refused.error().error.message, HasSubstr("bob (L1)"));
  EXPECT_EQ(place({}, {shared(0, gib(1))}).error().error.code, Code::kNoGpu);
}

TEST(Placement, SeveralGpusAreAllOrNothingAndInPciOrder) {
  auto rooms = std::vector{room(0), shared(1, gib(1)), room(2)};
  rooms[0].idle_since = WallTime(std::chrono::seconds(9));
  EXPECT_EQ(uuids(*place({2, {}, {}, {}}, rooms)), (std::vector<std::string>{"GPU-0", "GPU-2"}));
  const auto refused = place({3, {}, {}, {}}, rooms);
  EXPECT_EQ(refused.error().error.code, Code::kNoGpu);
  EXPECT_EQ(refused.error().free, 2);
  EXPECT_EQ(refused.error().total, 3);
}

TEST(Placement, RequestThatCanNeverBeFilledIsRefusedAtOnce) {
  const auto rooms = std::vector{shared(0, gib(23))};
  EXPECT_EQ(place({2, {}, {}, {}}, rooms).error().error.code, Code::kInvalid);
  EXPECT_EQ(place({0, {}, {}, {}}, rooms).error().error.code, Code::kInvalid);
  EXPECT_EQ(place({17, {}, {}, {}}, rooms).error().error.code, Code::kInvalid);
  EXPECT_EQ(place(slice(gib(24)), rooms).error().error.code, Code::kLimit);
  EXPECT_EQ(place(slice(gib(2)), rooms).error().error.code, Code::kNoGpu);
}

TEST(Placement, ALimitThatOneContextWouldFillIsRefusedWithTheFigure) {
  auto small = room(0);
  small.context_cost = mib(518);
  const auto refused = place(slice(mib(512)), {small});
  EXPECT_EQ(refused.error().error.code, Code::kLimit);
  EXPECT_THAT(refused.error().error.message, HasSubstr("518 MiB"));
}

TEST(Placement, GpusInUnreservedUseAreLeftOut) {
  auto busy = room(0);
  busy.in_unreserved_use = true;
  busy.unreserved_use = gib(4);
  EXPECT_EQ(uuids(*place({}, {busy, room(1)})), (std::vector<std::string>{"GPU-1"}));
  EXPECT_THAT(place({}, {busy}).error().error.message, HasSubstr("without a lease"));
  EXPECT_TRUE(place(slice(gib(8)), {busy}));  // beside it there is room
  EXPECT_FALSE(place(slice(gib(20)), {busy}));
  // A GPU in unreserved use is chosen only if no other is free, however well it would fit.
  EXPECT_EQ(uuids(*place(slice(gib(8)), {busy, room(1)})), (std::vector<std::string>{"GPU-1"}));
}

TEST(Placement, HiddenMemoryIsTakenFromWhatSlicesMayHaveAndOtherGpusArePreferred) {
  auto desktop = room(0);
  desktop.hidden = mib(600);
  EXPECT_EQ(uuids(*place({}, {desktop, room(1)})), (std::vector<std::string>{"GPU-1"}));
  EXPECT_EQ(uuids(*place(slice(gib(8)), {desktop, room(1)})), (std::vector<std::string>{"GPU-1"}));
  EXPECT_TRUE(place({}, {desktop})) << "so little keeps nobody from all of it";
  EXPECT_TRUE(place(slice(gib(23)), {desktop}));
  const auto refused = place(slice(gib(24) - mib(600)), {desktop});
  EXPECT_THAT(refused.error().error.message,
              HasSubstr("600 MiB in use that no listed process has"));
}

TEST(Placement, GpuIsNotLeasedWholeWhileMemoryIsFreed) {
  auto freeing = room(0);
  freeing.hidden = gib(16);
  freeing.is_freeing = true;
  EXPECT_THAT(place({}, {freeing}).error().error.message,
              HasSubstr("memory of an ended program is being freed (16 GiB)"));
  EXPECT_TRUE(place(slice(gib(4)), {freeing}));
  EXPECT_FALSE(place(slice(gib(12)), {freeing}));
  PlacementRequest generous;
  generous.threshold = gib(20);
  EXPECT_TRUE(place(generous, {freeing})) << "its user does not mind so much use";
}

GpuRoom unified(int index) {
  GpuRoom r = room(index);
  r.info.unified = true;
  r.swap_capacity = r.capacity;
  return r;
}

PlacementRequest in_turns() {
  PlacementRequest request;
  request.swap = true;
  return request;
}

TEST(Placement, TurnsOnUnifiedMemoryAreRefusedWithTheReason) {
  const auto refused = place(in_turns(), {unified(0)});
  EXPECT_EQ(refused.error().error.code, Code::kInvalid);
  EXPECT_EQ(
      refused.error().error.message,
      "leases cannot take turns on GPU 0: its memory is the machine's, so there is nowhere to "
      "move theirs to; use --memory instead of --swap");
  EXPECT_TRUE(place(slice(gib(8)), {unified(0)}));
  EXPECT_TRUE(place({}, {unified(0)}));
}

TEST(Placement, UnknownMemoryIsNotZero) {
  auto unknown = unified(0);
  unknown.info.memory = unknown.capacity = Bytes();
  const auto refused = place(slice(gib(2)), {unknown});
  EXPECT_THAT(refused.error().error.message, HasSubstr("nobody can say how much memory GPU 0 has"));
  EXPECT_TRUE(place({}, {unknown}));
}

TEST(Placement, TurnsAreTakenWhereMemoryCanMove) {
  auto own = room(1);
  own.swap_capacity = own.capacity;
  EXPECT_EQ(uuids(*place(in_turns(), {unified(0), own})), (std::vector<std::string>{"GPU-1"}));
  PlacementRequest named = in_turns();
  named.gpus = {GpuUuid{"GPU-0"}};
  EXPECT_EQ(place(named, {unified(0), own}).error().error.code, Code::kInvalid);
}

TEST(Placement, UnifiedMemoryOfOtherProgramsIsNotForSlices) {
  auto busy = unified(0);
  busy.machine_use = gib(20);
  EXPECT_TRUE(place(slice(gib(3)), {busy}));
  const auto refused = place(slice(gib(8)), {busy});
  EXPECT_EQ(refused.error().error.code, Code::kNoGpu) << "they may end";
  EXPECT_THAT(refused.error().error.message,
              HasSubstr("20 GiB of the machine's memory are used by other programs"));
  EXPECT_TRUE(place({}, {busy})) << "a whole GPU is had beside them";
}

TEST(Placement, AGpuInErrorIsLeftOut) {
  auto broken = room(0);
  broken.error = "GPU is lost";
  EXPECT_THAT(place({}, {broken}).error().error.message, HasSubstr("GPU is lost"));
}

TEST(Placement, ASplitGpuIsLeasedByItsInstances) {
  auto parent = room(0);
  parent.info.mig_enabled = true;
  EXPECT_EQ(uuids(*place({}, {parent, room(1)})), (std::vector<std::string>{"GPU-1"}));
  EXPECT_EQ(place({1, {parent.info.uuid}, {}, {}}, {parent}).error().error.code, Code::kInvalid);
}

TEST(Placement, NamedGpusAreTakenInTheOrderGivenAndOnlyOnce) {
  const auto rooms = std::vector{room(0), room(1)};
  const GpuUuid a{"GPU-0"}, b{"GPU-1"};
  EXPECT_EQ(uuids(*place({1, {b, a}, {}, {}}, rooms)),
            (std::vector<std::string>{"GPU-1", "GPU-0"}));
  EXPECT_EQ(place({1, {a, a}, {}, {}}, rooms).error().error.code, Code::kInvalid);
}

TEST(Placement, PercentagesAreOfEachGpu) {
  const auto chosen = place({1, {}, SizeSpec{{}, 50}, SizeSpec{{}, 25}}, {room(0)});
  EXPECT_EQ(*chosen->front().limit, gib(12));
  EXPECT_EQ(*chosen->front().soft_limit, gib(6));
}

TEST(Placement, ASoftLimitLiesBelowALimit) {
  const auto rooms = std::vector{room(0)};
  EXPECT_EQ(place({1, {}, {}, SizeSpec{gib(1), 0}}, rooms).error().error.code, Code::kInvalid);
  EXPECT_EQ(place({1, {}, SizeSpec{gib(1), 0}, SizeSpec{gib(2), 0}}, rooms).error().error.code,
            Code::kInvalid);
}

TEST(Placement, RequestCanSetTheThresholdOfUnreservedUse) {
  auto used = room(0);
  used.unreserved_use = mib(700);  // below the site's threshold
  PlacementRequest request;
  EXPECT_TRUE(place(request, {used}));
  request.threshold = mib(500);
  EXPECT_EQ(place(request, {used}).error().error.code, Code::kNoGpu);
  request.threshold = Bytes();
  EXPECT_EQ(place(request, {used}).error().error.code, Code::kNoGpu);
  used.in_unreserved_use = true;  // above it
  request.threshold = gib(1);
  EXPECT_TRUE(place(request, {used}));
}

// Two GPUs of different kinds, and one that is split into two instances.
std::vector<GpuRoom> kinds() {
  auto rooms = std::vector{room(0), room(1), room(2), room(3), room(4)};
  rooms[0].info.name = "NVIDIA A100-SXM4-40GB";
  rooms[0].info.compute_major = 8;
  rooms[1].info.name = "NVIDIA H100 80GB HBM3";
  rooms[1].info.compute_major = 9;
  rooms[1].info.memory = gib(80);
  rooms[2].info.name = rooms[1].info.name;
  rooms[2].info.mig_enabled = true;
  for (const std::size_t i : {3u, 4u}) {
    rooms[i].info.name = "NVIDIA H100 80GB HBM3 MIG 3g.40gb";
    rooms[i].info.compute_major = 9;
    rooms[i].info.parent = rooms[2].info.uuid;
  }
  return rooms;
}

PlacementRequest of_kind(GpuWishes wishes, int count = 1) {
  PlacementRequest request;
  request.count = count;
  request.wishes = std::move(wishes);
  return request;
}

TEST(Placement, OnlyTheRequestedKindIsChosen) {
  const auto rooms = kinds();
  using Uuids = std::vector<std::string>;
  EXPECT_EQ(uuids(*place(of_kind({.min_memory = gib(40)}), rooms)), Uuids{"GPU-1"});
  EXPECT_EQ(uuids(*place(of_kind({.type = "a100"}), rooms)), Uuids{"GPU-0"});
  EXPECT_EQ(uuids(*place(of_kind({.type = "3g.40gb"}, 2), rooms)), (Uuids{"GPU-3", "GPU-4"}));
  EXPECT_EQ(uuids(*place(of_kind({.min_cc = 90}), rooms)), Uuids{"GPU-1"});
}

TEST(Placement, TooFewGpusOfAKindIsRefusedForGood) {
  const auto refused = place(of_kind({.type = "h200"}), kinds());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().error.code, Code::kInvalid);
  EXPECT_THAT(refused.error().error.message,
              HasSubstr("1 of the kind asked for (h200), this machine has 0: its GPUs are NVIDIA "
                        "A100-SXM4-40GB, NVIDIA H100 80GB HBM3"));
  EXPECT_EQ(place(of_kind({.type = "a100"}, 2), kinds()).error().error.code, Code::kInvalid);
  PlacementRequest named = of_kind({.type = "a100"});
  named.gpus = {GpuUuid{"GPU-1"}};
  EXPECT_EQ(place(named, kinds()).error().error.code, Code::kInvalid);
}

TEST(Placement, WholeGpusAndInstancesAreMixedOnlyByName) {
  using Uuids = std::vector<std::string>;
  const auto rooms = kinds();
  EXPECT_EQ(uuids(*place(of_kind({}, 2), rooms)), (Uuids{"GPU-0", "GPU-1"}));
  EXPECT_EQ(uuids(*place(of_kind({.min_cc = 90}, 2), rooms)), (Uuids{"GPU-3", "GPU-4"}))
      << "of whole ones there is one";
  EXPECT_FALSE(place(of_kind({}, 3), rooms)) << "two of each";
  PlacementRequest named;
  named.gpus = {GpuUuid{"GPU-1"}, GpuUuid{"GPU-3"}};
  EXPECT_TRUE(place(named, rooms));
}

TEST(Placement, NearALeaseChoosesTheClosestFreeGpu) {
  auto rooms = std::vector{room(0), room(1), room(2)};
  const std::vector<GpuLink> links = {{GpuUuid{"GPU-0"}, GpuUuid{"GPU-2"}, Closeness::kNvlink},
                                      {GpuUuid{"GPU-0"}, GpuUuid{"GPU-1"}, Closeness::kOneSwitch}};
  const Topology topology(links);
  PlacementRequest request = of_kind({.near = {GpuUuid{"GPU-0"}}});
  rooms[0].exclusive = true;
  rooms[0].leases = 1;
  rooms[0].holders = "alice (L3)";
  EXPECT_EQ(uuids(*place(request, rooms, topology)), (std::vector<std::string>{"GPU-2"}));
  rooms[2].draining = true;
  EXPECT_EQ(uuids(*place(request, rooms, topology)), (std::vector<std::string>{"GPU-1"}))
      << "a wish, no condition";
}

}  // namespace
}  // namespace gpurota::lease
