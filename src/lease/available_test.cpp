#include "lease/available.h"

#include "lease/random_machine_test.h"

#include <gtest/gtest.h>

namespace gpurota::lease {
namespace {

GpuRoom room_of(Bytes capacity) {
  GpuRoom room;
  room.info.uuid = GpuUuid{"GPU-0"};
  room.info.memory = gib(80);
  room.capacity = room.swap_capacity = capacity;
  return room;
}

Available only(const GpuRoom& room, const std::vector<Occupant>& leases = {}) {
  return available({room}, leases, {}, WallTime{std::chrono::hours(1)}).front();
}

TEST(Available, IsTheCapacityThatTheSiteHasSet) {
  EXPECT_EQ(only(room_of(gib(60))).slice, gib(60));
}

TEST(Available, ExcludesUseAboveLimitsAndWithoutLeases) {
  GpuRoom room = room_of(gib(60));
  room.unreserved_use = gib(10);
  room.above_limits = gib(5);
  EXPECT_EQ(only(room), (Available{gib(45), gib(45)}));
}

TEST(Available, IsZeroOutOfServiceOrWithoutRoomForAContext) {
  GpuRoom room = room_of(gib(60));
  room.draining = true;
  EXPECT_EQ(only(room), Available{});
  room.draining = false;
  room.unreserved_use = gib(60) - mib(400);
  room.context_cost = mib(500);
  EXPECT_EQ(only(room), Available{});
}

TEST(Available, CountsFillersAsIfTheyHadLeft) {
  Occupant filler;
  filler.kind = LeaseKind::kFiller;
  filler.gpus = {{GpuUuid{"GPU-0"}, std::nullopt, {}}};
  EXPECT_EQ(only(room_of(gib(60)), {filler}).slice, gib(60));
}

// A request for all that is available gets it, and a request for a byte more does not.
TEST(Available, EqualsWhatTheQueueGrantsToTheByte) {
  int asked = 0;
  for (std::uint64_t seed = 1; seed <= 400 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const testing::RandomMachine machine(seed);
    const auto plans = decide(machine.view(), machine.now).plans;
    const auto all = available(machine.rooms, machine.leases, plans, machine.now);
    ASSERT_EQ(all.size(), machine.rooms.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (const bool swap : {false, true}) {
        const Bytes most = swap ? all[i].turns : all[i].slice;
        std::vector<Request> requests = machine.queue;
        Request& newcomer = requests.emplace_back();
        newcomer.id = RequestId{UINT64_MAX};
        newcomer.placement.gpus = {machine.rooms[i].info.uuid};
        newcomer.placement.swap = swap;
        newcomer.placement.memory = SizeSpec{most + Bytes(1), 0};
        const bool usable = most + Bytes(1) > machine.rooms[i].context_cost;
        if (usable) {
          EXPECT_FALSE(machine.starts(requests, requests.size() - 1)) << i;
        }
        if (most.is_zero()) continue;
        ++asked;
        newcomer.placement.memory = SizeSpec{most, 0};
        EXPECT_TRUE(machine.starts(requests, requests.size() - 1))
            << i << (swap ? " in turns " : " ") << to_string(most);
      }
    }
  }
  EXPECT_GT(asked, 400) << "hardly anything was available";
}

}  // namespace
}  // namespace gpurota::lease
