#include "lease/bookings.h"

#include "lease/random_machine_test.h"
#include "lease/reason.h"
#include "lease/ways_out.h"
#include "testing/effort.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::lease {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

const WallTime kNow{100h};

GpuUuid gpu(int index) { return GpuUuid{"GPU-" + std::to_string(index)}; }

// A machine of GPUs of 80 GiB, with bookings.
struct Machine {
  explicit Machine(int gpus = 2) {
    for (int i = 0; i < gpus; ++i) {
      GpuRoom room;
      room.info.index = i;
      room.info.uuid = gpu(i);
      room.info.memory = gib(80);
      room.capacity = room.swap_capacity = gib(80);
      rooms.push_back(room);
    }
  }
  QueueView view() const { return {queue, rooms, leases, topology, bookings}; }
  Request request(PlacementRequest placement, std::optional<std::chrono::minutes> lasts) {
    return {RequestId{++last}, LeaseKind::kRun, "alice", std::move(placement), lasts};
  }
  tl::expected<std::vector<LeaseGpu>, NotBooked> book(PlacementRequest placement,
                                                      std::chrono::minutes in,
                                                      std::chrono::minutes lasts) {
    Request wanted = request(std::move(placement), lasts);
    wanted.kind = LeaseKind::kReservation;
    const WallTime from = kNow + in;
    auto gpus = lease::book(view(), wanted, from, kNow);
    if (gpus) bookings.push_back({wanted.id, "bob", *gpus, from, from + lasts});
    return gpus;
  }
  bool starts(const Request& wanted) {
    std::vector<Request> requests = queue;
    requests.push_back(wanted);
    return !decide({requests, rooms, leases, topology, bookings}, kNow).grants.empty();
  }

  // A booking of bob's, whose GPU was chosen an hour ago.
  Beginning begin(const Request& wanted, const GpuUuid& kept) const {
    Booked booked{wanted.id, "bob", {{kept, std::nullopt, {}}}, kNow, kNow + 60min};
    booked.uid = 7;
    booked.placed = kNow - 60min;
    return lease::begin(view(), wanted, booked, kNow);
  }
  // A lease of another user, without a stated end.
  Occupant& open_ended(std::vector<int> gpus, WallTime since, std::optional<Bytes> limit = {}) {
    Occupant lease;
    lease.id = LeaseId{++last};
    lease.user = "dave";
    lease.uid = 8;
    lease.since = since;
    lease.leaves_for_bookings = true;
    for (const int index : gpus) lease.gpus.push_back({gpu(index), limit, {}});
    leases.push_back(lease);
    return leases.back();
  }
  Request open_ended_request(int count) {
    Request wanted = request({count, {}, {}, {}}, {});
    wanted.unbooked_for = 60min;
    return wanted;
  }

  std::vector<GpuRoom> rooms;
  std::vector<Occupant> leases;
  std::vector<Request> queue;
  std::vector<Booked> bookings;
  Topology topology;
  std::uint64_t last = 0;
};

TEST(Bookings, LeaseThatEndsBeforeABookingMayUseItsGpu) {
  Machine machine(1);
  ASSERT_TRUE(machine.book({1, {}, {}, {}}, 120min, 60min));
  EXPECT_TRUE(machine.starts(machine.request({1, {}, {}, {}}, 120min)));
  EXPECT_FALSE(machine.starts(machine.request({1, {}, {}, {}}, 121min)));
  EXPECT_FALSE(machine.starts(machine.request({1, {}, {}, {}}, {})));
}

TEST(Bookings, ARequestWithoutATimeLimitGetsAGpuThatIsNotBooked) {
  Machine machine(2);
  ASSERT_TRUE(machine.book({1, {gpu(0)}, {}, {}}, 120min, 60min));
  machine.queue.push_back(machine.request({1, {}, {}, {}}, {}));
  const auto decision = decide(machine.view(), kNow);
  ASSERT_EQ(decision.grants.size(), 1U);
  EXPECT_EQ(decision.grants[0].gpus[0].uuid, gpu(1));
}

TEST(Bookings, AWaitingRequestNamesTheBookingAndWhatWouldHelp) {
  Machine machine(1);
  ASSERT_TRUE(machine.book({1, {}, {}, {}}, 120min, 60min));
  machine.queue.push_back(machine.request({1, {}, {}, {}}, {}));
  const auto decision = decide(machine.view(), kNow);
  ASSERT_EQ(decision.waiting.size(), 1U);
  EXPECT_EQ(decision.waiting[0].expected, kNow + 180min);
  const Reason reason = waiting_reason(decision.waiting[0]);
  EXPECT_EQ(reason.text, "GPU 0 is free until {time}, then bob's booking R1 begins");
  EXPECT_EQ(reason.time, kNow + 120min);
  const auto ways = ways_out(machine.view(), 0, true, kNow);
  ASSERT_FALSE(ways.empty());
  EXPECT_EQ(ways[0].kind, WayOut::Kind::kTime);
  EXPECT_EQ(ways[0].lasts, 120min);
}

TEST(Bookings, AreRefusedWhereALeaseWithoutAnEndIs) {
  Machine machine(1);
  Occupant lease;
  lease.id = LeaseId{3};
  lease.user = "bob";
  lease.gpus = {{gpu(0), std::nullopt, {}}};
  machine.leases.push_back(lease);
  const auto refused = machine.book({1, {}, {}, {}}, 120min, 60min);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().error.code, Code::kNoGpu);
  ASSERT_TRUE(refused.error().obstacle);
  EXPECT_EQ(refused.error().obstacle->lease, LeaseId{3});
  EXPECT_FALSE(refused.error().obstacle->at);
  machine.leases[0].ends = kNow + 120min;
  EXPECT_TRUE(machine.book({1, {}, {}, {}}, 120min, 60min)) << "it ends just in time";
}

TEST(Bookings, OverlapOnlyAsSlicesThatFitTogether) {
  Machine machine(1);
  ASSERT_TRUE(machine.book({1, {}, SizeSpec{gib(40), 0}, {}}, 60min, 60min));
  EXPECT_FALSE(machine.book({1, {}, {}, {}}, 90min, 60min));
  EXPECT_TRUE(machine.book({1, {}, SizeSpec{gib(40), 0}, {}}, 90min, 60min));
  const auto third = machine.book({1, {}, SizeSpec{gib(1), 0}, {}}, 90min, 10min);
  ASSERT_FALSE(third);
  EXPECT_TRUE(third.error().obstacle->booking);
  EXPECT_TRUE(machine.book({1, {}, {}, {}}, 150min, 60min)) << "behind both";
}

TEST(Bookings, BookingDelaysNoEarlierRequest) {
  Machine machine(1);
  Occupant lease;
  lease.gpus = {{gpu(0), std::nullopt, {}}};
  lease.ends = kNow + 30min;
  machine.leases.push_back(lease);
  machine.queue.push_back(machine.request({1, {}, {}, {}}, 60min));
  EXPECT_FALSE(machine.book({1, {}, {}, {}}, 60min, 60min));
  EXPECT_TRUE(machine.book({1, {}, {}, {}}, 90min, 60min));
}

TEST(Bookings, SwapLeaseGetsOnlyWhatIsNotPromised) {
  Machine machine(1);
  ASSERT_TRUE(machine.book({1, {}, SizeSpec{gib(20), 0}, {}}, 60min, 60min));
  Request swap = machine.request({1, {}, {}, {}}, {});
  swap.placement.swap = true;
  machine.queue.push_back(swap);
  const auto decision = decide(machine.view(), kNow);
  ASSERT_EQ(decision.grants.size(), 1U);
  EXPECT_LE(*decision.grants[0].gpus[0].limit, gib(60));
}

TEST(Bookings, BeginOnOtherGpusWhereTheirOwnAreLost) {
  Machine machine(2);
  ASSERT_TRUE(machine.book({1, {}, {}, {}}, 0min, 60min));
  const GpuUuid kept = machine.bookings[0].gpus[0].uuid;
  machine.bookings.clear();
  const Request wanted = machine.request({1, {}, {}, {}}, 60min);
  EXPECT_EQ(machine.begin(wanted, kept).gpus[0].uuid, kept);
  machine.rooms[0].draining = true;
  EXPECT_EQ(machine.begin(wanted, gpu(0)).gpus[0].uuid, gpu(1));
  EXPECT_EQ(machine.begin(wanted, GpuUuid{"GPU-gone"}).gpus[0].uuid, gpu(1));
  machine.rooms[1].error = "fell off the bus";
  const Beginning none = machine.begin(wanted, gpu(0));
  EXPECT_TRUE(none.gpus.empty());
  ASSERT_TRUE(none.why);
  EXPECT_THAT(none.why->text, HasSubstr("GPU 0 is draining"));
}

TEST(Bookings, MakeFillersLeaveWhenTheyBegin) {
  Machine machine(1);
  ASSERT_TRUE(machine.book({1, {}, {}, {}}, 0min, 60min));
  Occupant filler;
  filler.id = LeaseId{7};
  filler.kind = LeaseKind::kFiller;
  filler.gpus = {{gpu(0), std::nullopt, {}}};
  machine.leases.push_back(filler);
  machine.bookings.clear();
  const Beginning now = machine.begin(machine.request({1, {}, {}, {}}, 60min), gpu(0));
  EXPECT_TRUE(now.gpus.empty());
  EXPECT_FALSE(now.why);
  EXPECT_THAT(now.evict, ::testing::ElementsAre(LeaseId{7}));
}

TEST(Bookings, BookingPreventsMoreTimeAndMoreMemory) {
  Machine machine(1);
  ASSERT_TRUE(machine.book({1, {}, SizeSpec{gib(40), 0}, {}}, 60min, 60min));
  Occupant lease;
  lease.gpus = {{gpu(0), gib(40), {}}};
  lease.ends = kNow + 90min;
  EXPECT_FALSE(in_the_way_of(machine.view(), lease, kNow)) << "both fit";
  lease.gpus[0].limit = gib(41);
  ASSERT_TRUE(in_the_way_of(machine.view(), lease, kNow));
  EXPECT_EQ(in_the_way_of(machine.view(), lease, kNow)->user, "bob");
  lease.ends = kNow + 60min;
  EXPECT_FALSE(in_the_way_of(machine.view(), lease, kNow)) << "it ends before";
}

TEST(Bookings, ABookingCountsAgainstTheLimitOfItsUsersShares) {
  Machine machine(1);
  Occupant lease;
  lease.gpus = {{gpu(0), gib(8), {}}};
  lease.gpus[0].compute.least = 50;
  std::vector<Booked> booked{{.id = RequestId{1}, .user = "bob", .gpus = lease.gpus}};
  booked[0].gpus[0].compute.least = 40;
  booked[0].from = kNow + 60min;
  booked[0].until = kNow + 120min;
  QueueView view = machine.view();
  const QueueView with{view.queue, view.rooms, view.leases, view.topology, booked, view.keeping};
  EXPECT_FALSE(in_the_way_of(with, lease, kNow)) << "there is no limit";
  EXPECT_TRUE(in_the_way_of(with, lease, kNow, 50));
  EXPECT_FALSE(in_the_way_of(with, lease, kNow, 90));
}

TEST(Bookings, WorkWithoutAStatedEndStartsWhereNothingIsBookedForAWhile) {
  Machine machine(1);
  ASSERT_TRUE(machine.book({1, {}, {}, {}}, 60min, 60min));
  EXPECT_TRUE(machine.starts(machine.open_ended_request(1)));
  Request longer = machine.open_ended_request(1);
  longer.unbooked_for = 61min;
  EXPECT_FALSE(machine.starts(longer));
  EXPECT_FALSE(machine.starts(machine.request({1, {}, {}, {}}, {}))) << "the site wants it to wait";
}

TEST(Bookings, WorkWithoutAStatedEndGetsTheGpusThatAreBookedLatest) {
  Machine machine(4);
  ASSERT_TRUE(machine.book({1, {gpu(0)}, {}, {}}, 90min, 60min));
  ASSERT_TRUE(machine.book({1, {gpu(1)}, {}, {}}, 300min, 60min));
  ASSERT_TRUE(machine.book({1, {gpu(3)}, {}, {}}, 200min, 60min));
  const auto gpus_of = [&](int count) {
    machine.queue = {machine.open_ended_request(count)};
    std::vector<GpuUuid> gpus;
    for (const Grant& grant : decide(machine.view(), kNow).grants) {
      for (const LeaseGpu& share : grant.gpus) gpus.push_back(share.uuid);
    }
    return gpus;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(gpus_of(1), ElementsAre(gpu(2)));
  EXPECT_THAT(gpus_of(2), ElementsAre(gpu(1), gpu(2)));
  EXPECT_THAT(gpus_of(3), ElementsAre(gpu(1), gpu(2), gpu(3)));
}

TEST(Bookings, AreRefusedOnGpusOfEarlierLeases) {
  Machine machine(1);
  machine.open_ended({0}, kNow - 60min);
  const auto refused = machine.book({1, {}, {}, {}}, 120min, 60min);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().obstacle->user, "dave");
}

TEST(Bookings, OnlyYoungerLeasesLeaveForABooking) {
  Machine machine(1);
  const Request wanted = machine.request({1, {gpu(0)}, {}, {}}, 60min);
  Occupant& lease = machine.open_ended({0}, kNow - 30min);
  Beginning now = machine.begin(wanted, gpu(0));
  EXPECT_THAT(now.leaving, ::testing::ElementsAre(lease.id));
  EXPECT_FALSE(now.why);
  lease.since = kNow - 61min;
  now = machine.begin(wanted, gpu(0));
  EXPECT_THAT(now.leaving, ::testing::IsEmpty());
  ASSERT_TRUE(now.why);
  EXPECT_THAT(now.why->text, HasSubstr("dave"));
  lease.since = kNow - 30min;
  lease.uid = 7;
  EXPECT_THAT(machine.begin(wanted, gpu(0)).leaving, ::testing::IsEmpty())
      << "a booking never ends its owner's own work";
}

TEST(Bookings, EndNoLeaseIfAFreeGpuSuffices) {
  Machine machine(3);
  machine.open_ended({0}, kNow - 30min);
  const Request any = machine.request({1, {}, {}, {}}, 60min);
  const Beginning moved = machine.begin(any, gpu(0));
  ASSERT_EQ(moved.gpus.size(), 1U);
  EXPECT_NE(moved.gpus[0].uuid, gpu(0));
  // Elsewhere only one GPU is free, and two are wanted.
  machine.open_ended({1}, kNow - 20min);
  Booked both{RequestId{9}, "bob", {{gpu(0), {}, {}}, {gpu(1), {}, {}}}, kNow, kNow + 60min};
  both.placed = kNow - 60min;
  const Request two = machine.request({2, {}, {}, {}}, 60min);
  EXPECT_EQ(lease::begin(machine.view(), two, both, kNow).leaving.size(), 1U);
}

TEST(Bookings, LeasesThatWillLeaveAreKnownAhead) {
  Machine machine(1);
  const Request wanted = machine.request({1, {gpu(0)}, SizeSpec{gib(50), 0}, {}}, 60min);
  Booked booked{wanted.id, "bob", {{gpu(0), gib(50), {}}}, kNow + 60min, kNow + 120min};
  booked.uid = 7;
  booked.placed = kNow - 60min;
  const auto leaving = [&] { return lease::leaving_for(machine.view(), wanted, booked, kNow); };
  const LeaseId older = machine.open_ended({0}, kNow - 50min, gib(20)).id;
  const LeaseId younger = machine.open_ended({0}, kNow - 40min, gib(20)).id;
  EXPECT_THAT(leaving(), ::testing::ElementsAre(younger));
  machine.leases.front().gpus[0].limit = gib(40);
  EXPECT_THAT(leaving(), ::testing::ElementsAre(older)) << "the younger can stay beside it";
  machine.leases.front().ends = kNow + 60min;
  machine.leases.front().leaves_for_bookings = false;
  EXPECT_THAT(leaving(), ::testing::IsEmpty()) << "that will be over";
  // Another user's booking that ends before this booking begins will be over, too.
  Booked before{RequestId{9}, "carol", {{gpu(0), {}, {}}}, kNow + 10min, kNow + 60min};
  machine.bookings.push_back(before);
  EXPECT_THAT(leaving(), ::testing::IsEmpty());
  machine.leases.front().ends = kNow + 61min;
  EXPECT_THAT(leaving(), ::testing::IsEmpty()) << "the younger alone would not be enough";
}

TEST(Bookings, NoLeaseIsToLeaveIfAFreeGpuSuffices) {
  Machine machine(2);
  const LeaseId lease = machine.open_ended({0}, kNow - 30min).id;
  Booked booked{RequestId{9}, "bob", {{gpu(0), {}, {}}}, kNow + 60min, kNow + 120min};
  booked.placed = kNow - 60min;
  const Request any = machine.request({1, {}, {}, {}}, 60min);
  const Request named = machine.request({1, {gpu(0)}, {}, {}}, 60min);
  EXPECT_THAT(lease::leaving_for(machine.view(), any, booked, kNow), ::testing::IsEmpty());
  EXPECT_THAT(lease::leaving_for(machine.view(), named, booked, kNow),
              ::testing::ElementsAre(lease));
}

TEST(Bookings, EndTheYoungestLeasesAndNoMoreThanNeeded) {
  Machine machine(1);
  const LeaseId oldest = machine.open_ended({0}, kNow - 50min, gib(30)).id;
  const LeaseId middle = machine.open_ended({0}, kNow - 40min, gib(20)).id;
  const LeaseId youngest = machine.open_ended({0}, kNow - 30min, gib(20)).id;
  const auto leaving = [&](std::uint64_t need) {
    return machine.begin(machine.request({1, {gpu(0)}, SizeSpec{gib(need), 0}, {}}, 60min), gpu(0))
        .leaving;
  };
  EXPECT_THAT(leaving(25), ::testing::ElementsAre(youngest));
  EXPECT_THAT(leaving(45), ::testing::ElementsAre(middle, youngest));
  EXPECT_THAT(leaving(60), ::testing::ElementsAre(oldest, youngest))
      << "the middle one can stay beside it";
}

// A swap lease on these GPUs. When it is moved to host memory, 1 GiB stays on each GPU.
Occupant& swap_lease(Machine& machine, std::vector<int> gpus, WallTime since, Bytes limit) {
  Occupant& lease = machine.open_ended(std::move(gpus), since, limit);
  lease.stays = gib(1);
  for (LeaseGpu& share : lease.gpus) {
    share.swap = true;
    for (GpuRoom& room : machine.rooms) {
      if (room.info.uuid == share.uuid) room.swap_needed = std::max(room.swap_needed, limit);
    }
  }
  return lease;
}

TEST(Bookings, BookedSliceMovesASwapLeaseToHostMemoryAndEndsNone) {
  Machine machine(1);
  const Bytes all = machine.rooms[0].capacity;
  const LeaseId lease = swap_lease(machine, {0}, kNow - 30min, all).id;
  const auto slice = [&](Bytes size) {
    return machine.begin(machine.request({1, {gpu(0)}, SizeSpec{size, 0}, {}}, 60min), gpu(0));
  };
  Beginning now = slice(gib(50));
  EXPECT_THAT(now.aside, ::testing::ElementsAre(lease));
  EXPECT_THAT(now.leaving, ::testing::IsEmpty());
  EXPECT_FALSE(now.why);
  EXPECT_THAT(now.gpus, ::testing::IsEmpty()) << "its memory is there until it has been moved";
  now = slice(all);
  EXPECT_THAT(now.leaving, ::testing::ElementsAre(lease)) << "what it keeps leaves too little";
  machine.leases[0].stays.reset();
  EXPECT_THAT(slice(gib(50)).leaving, ::testing::ElementsAre(lease)) << "host memory is full";
  machine.leases[0].stays = gib(1);
  machine.leases[0].moved_out = true;
  now = slice(gib(50));
  EXPECT_THAT(now.gpus, ::testing::SizeIs(1));
  // A new slice of another user does not take the room that the lease needs when it returns.
  machine.queue.push_back(machine.request({1, {}, SizeSpec{gib(5), 0}, {}}, 60min));
  EXPECT_THAT(decide(machine.view(), kNow).grants, ::testing::IsEmpty());
}

TEST(Bookings, BookedWholeGpuEndsASwapLease) {
  Machine machine(1);
  const LeaseId lease = swap_lease(machine, {0}, kNow - 30min, gib(20)).id;
  const Beginning now = machine.begin(machine.request({1, {gpu(0)}, {}, {}}, 60min), gpu(0));
  EXPECT_THAT(now.leaving, ::testing::ElementsAre(lease));
  EXPECT_THAT(now.aside, ::testing::IsEmpty());
}

TEST(Bookings, MoveNoSwapLeaseThatFitsBesideThem) {
  Machine machine(2);
  const Bytes all = machine.rooms[0].capacity;
  swap_lease(machine, {0}, kNow - 50min, all - gib(10));
  const LeaseId large = swap_lease(machine, {0, 1}, kNow - 40min, all - gib(5)).id;
  machine.open_ended({0}, kNow - 30min, gib(5));
  const auto with = [&](std::uint64_t size) {
    return machine.begin(machine.request({1, {gpu(0)}, SizeSpec{gib(size), 0}, {}}, 60min), gpu(0));
  };
  EXPECT_THAT(with(4).aside, ::testing::ElementsAre(large));
  EXPECT_THAT(with(4).leaving, ::testing::IsEmpty());
  EXPECT_THAT(with(8).leaving, ::testing::IsEmpty()) << "both are moved, so the slice need not end";
  EXPECT_THAT(with(8).aside, ::testing::SizeIs(2));
}

TEST(Bookings, AssumeThatWaitingWorkTakesADay) {
  Machine machine(1);
  Occupant lease;
  lease.gpus = {{gpu(0), std::nullopt, {}}};
  lease.ends = kNow + 60min;
  machine.leases.push_back(lease);
  machine.queue.push_back(machine.open_ended_request(1));
  EXPECT_FALSE(machine.book({1, {}, {}, {}}, 120min, 60min));
  EXPECT_TRUE(machine.book({1, {}, {}, {}}, 25 * 60min, 60min));
  machine.bookings.clear();
  machine.leases.clear();
  machine.rooms[0].draining = true;
  EXPECT_TRUE(machine.queue.size() == 1U) << "nobody knows when it starts";
}

// A random machine with a clock: leases begin and end, on time or early; bookings are made and
// begin.
class Days {
 public:
  explicit Days(std::uint64_t seed) : machine_(seed), random_(seed), now_(machine_.now) {
    // The memory that leases cannot move is not known in advance. If leases have no such memory,
    // promises are exact.
    for (GpuRoom& room : machine_.rooms) room.swap_wired = Bytes();
  }
  void run() {
    for (int step = 0; step < 30 && !::testing::Test::HasFailure(); ++step) {
      if (chance(50)) ask();
      if (chance(60)) book();
      settle();
      advance();
      begin_bookings();
    }
  }
  int booked() const { return booked_; }
  int begun() const { return begun_; }

 private:
  struct Promise {
    Request request;
    Booked booked;
  };
  int pick(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  bool chance(int percent) { return pick(1, 100) <= percent; }

  std::vector<Booked> bookings(RequestId without = {}) const {
    std::vector<Booked> all;
    for (const Promise& each : promises_) {
      if (each.request.id != without) all.push_back(each.booked);
    }
    return all;
  }
  void ask() {
    Request wanted = machine_.random_request();
    // A swap lease without a limit, which gets what is left.
    if (wanted.placement.swap && chance(50)) wanted.placement.memory.reset();
    machine_.queue.push_back(wanted);
  }
  void book() {
    Request wanted = machine_.random_request();
    wanted.kind = LeaseKind::kReservation;
    wanted.placement.swap = false;
    wanted.lasts = std::chrono::minutes(pick(2, 300));
    const WallTime from = now_ + std::chrono::minutes(pick(1, 600));
    const auto others = bookings();
    auto gpus = lease::book({machine_.queue, machine_.rooms, machine_.leases, {}, others}, wanted,
                            from, now_);
    if (!gpus) return;
    promises_.push_back({wanted, {wanted.id, "bob", *gpus, from, from + *wanted.lasts}});
    ++booked_;
  }
  void settle() {
    for (int round = 0; round < 20; ++round) {
      const auto promised = bookings();
      const QueueDecision decision =
          decide({machine_.queue, machine_.rooms, machine_.leases, {}, promised}, now_);
      for (const auto& [id, error] : decision.impossible) drop(id);
      for (const Grant& grant : decision.grants) {
        const auto it = std::find_if(machine_.queue.begin(), machine_.queue.end(),
                                     [&](const Request& r) { return r.id == grant.request; });
        add_lease(*it, grant.gpus, it->lasts ? std::optional(now_ + *it->lasts) : std::nullopt);
        machine_.queue.erase(it);
      }
      end(decision.evict);
      if (decision.grants.empty() && decision.evict.empty() && decision.impossible.empty()) return;
    }
  }
  void drop(RequestId id) {
    std::erase_if(machine_.queue, [&](const Request& request) { return request.id == id; });
  }
  void end(const std::vector<LeaseId>& leases) {
    std::erase_if(machine_.leases, [&](const Occupant& lease) {
      return std::find(leases.begin(), leases.end(), lease.id) != leases.end();
    });
    count_swap();
  }
  void add_lease(const Request& request, const std::vector<LeaseGpu>& gpus,
                 std::optional<WallTime> ends) {
    machine_.leases.push_back({LeaseId{1000 + ++last_}, request.kind, request.user, gpus, ends});
    count_swap();
  }
  // Computes what the largest swap lease has on each GPU.
  void count_swap() {
    for (GpuRoom& room : machine_.rooms) {
      room.swap_needed = Bytes();
      for (const Occupant& lease : machine_.leases) {
        for (const LeaseGpu& share : lease.gpus) {
          if (share.uuid != room.info.uuid || !share.swap) continue;
          room.swap_needed = std::max(room.swap_needed, *share.limit);
        }
      }
    }
  }
  void advance() {
    WallTime next = now_ + std::chrono::minutes(pick(1, 120));
    for (const Occupant& lease : machine_.leases) {
      if (lease.ends && *lease.ends > now_) next = std::min(next, *lease.ends);
    }
    for (const Promise& each : promises_) next = std::min(next, std::max(each.booked.from, now_));
    now_ = next;
    std::vector<LeaseId> over;
    for (const Occupant& lease : machine_.leases) {
      if ((lease.ends && *lease.ends <= now_) || chance(8)) over.push_back(lease.id);
    }
    end(over);
  }
  void begin_bookings() {
    std::vector<Promise> due;
    for (const Promise& each : promises_) {
      if (each.booked.from <= now_) due.push_back(each);
    }
    for (const Promise& each : due) begin(each);
  }
  void begin(const Promise& promise) {
    std::vector<GpuUuid> kept;
    for (const LeaseGpu& share : promise.booked.gpus) kept.push_back(share.uuid);
    Request request = promise.request;
    request.lasts = promise.booked.until - now_ > 0ms
                        ? std::optional(std::chrono::duration_cast<std::chrono::milliseconds>(
                              promise.booked.until - now_))
                        : std::nullopt;
    const auto others = bookings(request.id);
    Beginning now;
    for (int round = 0; round < 3; ++round) {
      now = lease::begin({machine_.queue, machine_.rooms, machine_.leases, {}, others}, request,
                         promise.booked, now_);
      if (!now.gpus.empty()) break;
      end(now.evict);
      end(now.move_out);
    }
    ASSERT_FALSE(now.gpus.empty()) << "it does not begin: " << now.why.value_or(Reason{}).text;
    for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(now.gpus[i].uuid, kept[i]);
    std::erase_if(promises_, [&](const Promise& each) { return each.request.id == request.id; });
    add_lease(request, now.gpus, promise.booked.until);
    ++begun_;
  }

  testing::RandomMachine machine_;
  std::mt19937_64 random_;
  WallTime now_;
  std::vector<Promise> promises_;
  std::uint64_t last_ = 0;
  int booked_ = 0, begun_ = 0;
};

TEST(Bookings, BeginOnTimeOnTheirGpusWhateverIsGrantedLater) {
  int booked = 0, begun = 0;
  constexpr unsigned kSeeds = gpurota::testing::effort(500U);
  for (std::uint64_t seed = 1; seed <= kSeeds && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Days days(seed);
    days.run();
    booked += days.booked();
    begun += days.begun();
  }
  EXPECT_GT(booked, static_cast<int>(2 * kSeeds)) << "hardly anything could be booked";
  EXPECT_GT(begun, booked / 2);
}

// A request for a whole GPU that would start at once if nothing were booked starts at once unless
// the booking begins before the request would end.
TEST(Bookings, AreFilledUpToTheMomentTheyBegin) {
  int before = 0, after = 0;
  for (std::uint64_t seed = 1; seed <= 400 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    testing::RandomMachine machine(seed);
    for (const GpuRoom& room : machine.rooms) {
      std::vector<Request> requests = machine.queue;
      Request& newcomer = requests.emplace_back();
      newcomer.id = RequestId{UINT64_MAX};
      newcomer.placement.gpus = {room.info.uuid};
      newcomer.lasts = std::chrono::minutes(1 + seed % 240);
      if (!machine.starts(requests, requests.size() - 1)) continue;
      const WallTime from = machine.now + 120min;
      const std::vector<Booked> booked = {
          {RequestId{1}, "bob", {{room.info.uuid, std::nullopt, {}}}, from, from + 60min}};
      const auto decision =
          decide({requests, machine.rooms, machine.leases, machine.topology, booked}, machine.now);
      const bool starts =
          std::any_of(decision.grants.begin(), decision.grants.end(),
                      [&](const Grant& grant) { return grant.request == newcomer.id; }) ||
          std::any_of(decision.waiting.begin(), decision.waiting.end(), [&](const Waiting& each) {
            return each.request == newcomer.id && each.way_made;
          });
      EXPECT_EQ(starts, *newcomer.lasts <= 120min);
      ++(starts ? before : after);
    }
  }
  EXPECT_GT(before, 50);
  EXPECT_GT(after, 50);
}

}  // namespace
}  // namespace gpurota::lease
