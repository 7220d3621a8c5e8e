// Each reason, from a real decision, compared with testdata/reasons.txt. With
// GPUROTA_REWRITE_GOLDEN=1 the file is rewritten: check each sentence then.
#include "lease/reason.h"

#include "lease/bookings.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

namespace gpurota::lease {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

const WallTime kNow{100h};
constexpr const char* kGolden = GPUROTA_TESTDATA "/reasons.txt";

GpuUuid gpu(int index) { return GpuUuid{"GPU-" + std::to_string(index)}; }

// A machine with 80 GiB GPUs, on which alice's requests wait.
struct Site {
  explicit Site(int gpus = 1) {
    for (int i = 0; i < gpus; ++i) {
      GpuRoom room;
      room.info.index = i;
      room.info.uuid = gpu(i);
      room.info.name = "H100";
      room.info.memory = room.capacity = room.swap_capacity = gib(80);
      rooms.push_back(room);
    }
  }
  Request& wait(PlacementRequest placement, std::optional<std::chrono::minutes> lasts = {}) {
    queue.push_back({RequestId{++last}, LeaseKind::kRun, "alice", std::move(placement), lasts});
    return queue.back();
  }
  Request& whole(int count, std::optional<std::chrono::minutes> lasts = {}) {
    return wait({count, {}, {}, {}}, lasts);
  }
  Request& slice(Bytes size) { return wait({1, {}, SizeSpec{size, 0}, {}}); }
  // A lease of bob's: a program without an end, or a reservation.
  Occupant& lease(const std::vector<int>& gpus, std::optional<std::chrono::minutes> left = {},
                  std::optional<Bytes> limit = {}) {
    Occupant occupant;
    occupant.id = LeaseId{++last};
    occupant.kind = left ? LeaseKind::kReservation : LeaseKind::kRun;
    occupant.user = "bob";
    for (const int index : gpus) occupant.gpus.push_back({gpu(index), limit, {}});
    if (left) occupant.ends = kNow + *left;
    leases.push_back(occupant);
    return leases.back();
  }
  // A booking of carol's, of whole GPUs.
  Booked& book(const std::vector<int>& gpus, std::chrono::minutes in,
               std::optional<std::chrono::minutes> lasts) {
    Booked booked{.id = RequestId{++last}, .user = "carol", .gpus = {}, .from = kNow + in};
    for (const int index : gpus) booked.gpus.push_back({gpu(index), std::nullopt, {}});
    booked.until = lasts ? booked.from + *lasts : kNever;
    bookings.push_back(booked);
    return bookings.back();
  }
  QueueView view() const { return {queue, rooms, leases, topology, bookings, &keeping}; }
  // The last waiting request.
  Waiting waiting() const {
    const QueueDecision decision = decide(view(), kNow);
    return decision.waiting.empty() ? Waiting() : decision.waiting.back();
  }
  Reason reason() const { return waiting_reason(waiting()); }

  std::vector<Request> queue;
  std::vector<GpuRoom> rooms;
  std::vector<Occupant> leases;
  std::vector<Booked> bookings;
  Topology topology;
  Keeping keeping;
  std::uint64_t last = 0;
};

struct Case {
  const char* what;
  Reason (*make)();
};

// In the order of the file.
constexpr Case kCases[] = {
    {"a GPU is draining",
     [] {
       Site site;
       site.rooms[0].draining = true;
       site.rooms[0].drain_reason = "new fan";
       site.whole(1);
       return site.reason();
     }},
    {"two of two GPUs are not there",
     [] {
       Site site(3);
       site.rooms[0].error = "fell off the bus";
       site.rooms[1].in_unreserved_use = true;
       site.rooms[1].unreserved_use = gib(20);
       site.whole(3);
       return site.reason();
     }},
    {"a long queue",
     [] {
       Site site;
       site.lease({0});
       for (int i = 0; i <= kMaxPlanned; ++i) site.whole(1);
       return site.reason();
     }},
    {"another came first, and the GPU is leased",
     [] {
       Site site;
       site.lease({0}, 40min);
       site.whole(1);
       site.whole(1);
       return site.reason();
     }},
    {"the same, and nobody knows when",
     [] {
       Site site;
       site.lease({0});
       site.whole(1);
       site.whole(1);
       return site.reason();
     }},
    {"another came first, and wants two of three leased GPUs",
     [] {
       Site site(3);
       site.lease({1, 2}, 40min);
       site.lease({0});
       site.wait({1, {gpu(1), gpu(2)}, {}, {}});
       site.wait({1, {gpu(1), gpu(2)}, {}, {}});
       return site.reason();
     }},
    {"an idle GPU is kept",
     [] {
       Site site(2);
       site.lease({0});
       site.whole(2);
       site.wait({1, {gpu(1)}, {}, {}});
       return site.reason();
     }},
    {"two idle GPUs are kept",
     [] {
       Site site(3);
       site.lease({0});
       site.whole(3);
       site.wait({1, {gpu(1), gpu(2)}, {}, {}});
       return site.reason();
     }},
    {"a reservation ends",
     [] {
       Site site;
       site.lease({0}, 40min);
       site.whole(1);
       return site.reason();
     }},
    {"the last of three GPUs is reserved",
     [] {
       Site site(3);
       site.lease({1}, 40min);
       site.whole(3);
       return site.reason();
     }},
    {"the same, while what is free is not kept for it",
     [] {
       Site site(3);
       site.lease({1}, 40min);
       site.whole(3);
       site.keeping.restore(gpu(0), std::chrono::hours(1));
       site.keeping.restore(gpu(2), std::chrono::hours(1));
       return site.reason();
     }},
    {"one of two slices ends that are in the way together",
     [] {
       Site site;
       site.lease({0}, 40min, gib(40));
       site.lease({0}, {}, gib(40));
       site.slice(gib(30));
       return site.reason();
     }},
    {"a program without a time limit",
     [] {
       Site site;
       site.lease({0});
       site.whole(1);
       return site.reason();
     }},
    {"two programs without a time limit",
     [] {
       Site site(2);
       site.lease({0});
       site.lease({1});
       site.whole(2);
       return site.reason();
     }},
    {"a program is ending",
     [] {
       Site site;
       site.lease({0}).ending = true;
       site.whole(1);
       return site.reason();
     }},
    {"one of two programs is ending",
     [] {
       Site site(2);
       site.lease({0});
       site.lease({1}).ending = true;
       site.whole(2);
       return site.reason();
     }},
    {"a reservation is over, and used",
     [] {
       Site site;
       Occupant& lease = site.lease({0}, 1min);
       lease.ends.reset();
       lease.expired = true;
       site.whole(1);
       return site.reason();
     }},
    {"a booking has begun in time",
     [] {
       Site site;
       site.book({0}, 0min, 60min);
       site.whole(1);
       return site.reason();
     }},
    {"one of two GPUs is booked, and that has begun",
     [] {
       Site site(2);
       site.book({0}, 0min, 60min);
       site.whole(2);
       return site.reason();
     }},
    {"bookings go on when they are over",
     [] {
       Site site;
       site.book({0}, 0min, {});
       site.whole(1);
       return site.reason();
     }},
    {"a booking begins too soon",
     [] {
       Site site;
       site.book({0}, 40min, 60min);
       site.whole(1);
       return site.reason();
     }},
    {"a booking of eight GPUs begins too soon",
     [] {
       Site site(8);
       site.book({0, 1, 2, 3, 4, 5, 6, 7}, 40min, 60min);
       site.whole(8, 60min);
       return site.reason();
     }},
    {"another starts too soon",
     [] {
       Site site(2);
       site.lease({0}, 40min);
       site.whole(2);
       site.whole(1, 60min);
       return site.reason();
     }},
    {"a capacity was lowered below a swap lease's limit",
     [] {
       Site site;
       site.lease({0}, {}, gib(60)).gpus[0].swap = true;
       site.rooms[0].capacity = site.rooms[0].swap_capacity = gib(40);
       site.slice(gib(8)).placement.swap = true;
       return site.reason();
     }},
    {"a capacity was lowered below what slices have, on one of two GPUs",
     [] {
       Site site(2);
       site.lease({0}, {}, gib(60));
       site.rooms[0].capacity = gib(40);
       site.wait({2, {}, SizeSpec{gib(8), 0}, {}});
       return site.reason();
     }},
    {"the same, and the lease there ends",
     [] {
       Site site;
       site.lease({0}, 40min, gib(60));
       site.rooms[0].capacity = gib(40);
       site.slice(gib(8));
       return site.reason();
     }},
    {"use without a lease is in the way of a slice",
     [] {
       Site site;
       site.lease({0}, {}, gib(40));
       site.rooms[0].unreserved_use = gib(20);
       site.slice(gib(30));
       return site.reason();
     }},
    {"a filler is leaving",
     [] {
       Site site;
       site.lease({0}).kind = LeaseKind::kFiller;
       site.whole(1);
       return site.reason();
     }},
    {"other programs have nearly all of the machine's memory",
     [] {
       Site site;
       site.rooms[0].info.unified = true;
       site.rooms[0].machine_use = gib(60);
       site.slice(gib(40));
       return site.reason();
     }},
    {"other programs have the machine's memory",
     [] {
       Site site;
       site.rooms[0].info.unified = true;
       site.lease({0}, {}, gib(40));
       site.rooms[0].machine_use = gib(20);
       site.slice(gib(30));
       return site.reason();
     }},
};

std::string line_of(const Case& each) {
  const Reason reason = each.make();
  std::string text = fmt::format("{}\n  {}: {}\n", each.what, to_string(reason.code), reason.text);
  if (reason.time) {
    text +=
        fmt::format("  time: in {} min\n",
                    std::chrono::duration_cast<std::chrono::minutes>(*reason.time - kNow).count());
  }
  return text;
}

TEST(WaitingReason, MatchesTheSentencesInItsFile) {
  std::string now;
  for (const Case& each : kCases) now += line_of(each);
  const char* const rewrite = std::getenv("GPUROTA_REWRITE_GOLDEN");
  if (rewrite != nullptr && *rewrite == '1') std::ofstream(kGolden) << now;
  std::ifstream in(kGolden);
  std::stringstream file;
  file << in.rdbuf();
  EXPECT_EQ(file.str(), now) << kGolden << " differs; GPUROTA_REWRITE_GOLDEN=1 writes it anew";
}

// The text has a place for a time if and only if there is a time. No sentence has a full stop.
TEST(WaitingReason, HasAPlaceForATimeOnlyIfATimeIsKnown) {
  for (const Case& each : kCases) {
    const Reason reason = each.make();
    const std::size_t place = reason.text.find(kTimePlace);
    EXPECT_EQ(place != std::string::npos, reason.time.has_value()) << each.what;
    if (place != std::string::npos) {
      EXPECT_EQ(reason.text.find(kTimePlace, place + 1), std::string::npos) << each.what;
    }
    EXPECT_NE(reason.text.back(), '.') << each.what;
    EXPECT_EQ(reason.remedy, "") << each.what;
  }
}

TEST(WaitingReason, EachRequestCodeOccursInADecision) {
  std::set<ReasonCode> made;
  for (const Case& each : kCases) made.insert(each.make().code);
  for (int i = 0; i < static_cast<int>(ReasonCode::kCannotStart); ++i) {
    const auto code = static_cast<ReasonCode>(i);
    EXPECT_TRUE(made.contains(code)) << to_string(code);
  }
}

// Three GPUs are free, so a request for eight must not say that none is.
TEST(WaitingReason, CountsFreeGpusThatAreBookedToo) {
  Site site(8);
  site.lease({3, 4, 5, 6, 7}, 40min);
  site.book({0, 1, 2, 3, 4, 5, 6, 7}, 24h * 13, 60min);
  site.whole(8);
  EXPECT_EQ(site.waiting().free_now, 3);
  EXPECT_THAT(site.reason().text, HasSubstr("3 of 8 GPUs are free for it; "));
}

TEST(WaitingReason, MemoryReservedForOthersIsNotFree) {
  Site site(4);
  site.lease({0});
  site.wait({1, {gpu(0), gpu(1)}, {}, {}});
  site.whole(3);
  EXPECT_EQ(site.waiting().free_now, 2) << "GPU 1 is kept";
}

TEST(WaitingReason, UntrustedNameIsMadeSafe) {
  Site site;
  site.lease({0}).user = "bob\x1b[31m";
  site.whole(1);
  EXPECT_EQ(site.reason().text.find('\x1b'), std::string::npos);
}

TEST(RefusalReason, NamesWhoHasEachGpuAndWhenTheNextIsExpected) {
  Site site;
  site.lease({0}, 40min);
  site.whole(1);
  const Reason reason = refusal_reason(site.waiting(), "GPU 0 is leased to bob (L1)");
  EXPECT_EQ(reason.code, ReasonCode::kLeasedUntil);
  EXPECT_EQ(reason.text, "GPU 0 is leased to bob (L1); the next is expected at {time}");
  EXPECT_EQ(reason.time, kNow + 40min);
}

TEST(RefusalReason, SaysUntilWhenAFreeGpuIsFree) {
  Site site;
  site.book({0}, 40min, 60min);
  site.whole(1);
  EXPECT_EQ(refusal_reason(site.waiting(), "").text,
            "GPU 0 is free until {time}, then carol's booking R1 begins");
  EXPECT_EQ(refusal_reason(site.waiting(), "GPU 0 is kept for carol").code, ReasonCode::kFreeUntil);
}

TEST(BookingObstacle, UsesTheReasonCodesOfRequests) {
  const auto obstacle = [](const Site& site) {
    Request wanted{RequestId{99}, LeaseKind::kReservation, "alice", {1, {}, {}, {}}, 60min};
    const auto refused = book(site.view(), wanted, kNow + 30min, kNow);
    return refused ? Reason{} : booking_obstacle(*refused.error().obstacle);
  };
  Site leased;
  leased.lease({0}, 40min);
  EXPECT_EQ(obstacle(leased).text, "bob's reservation (L1) on GPU 0 ends at {time}");
  EXPECT_EQ(obstacle(leased).code, ReasonCode::kLeasedUntil);
  Site open_ended;
  open_ended.lease({0});
  EXPECT_EQ(obstacle(open_ended).text, "bob's program (L1) on GPU 0 has no time limit");
  Site booked;
  booked.book({0}, 20min, 60min);
  EXPECT_EQ(obstacle(booked).text, "carol has booked GPU 0 (R1) until {time}");
  EXPECT_EQ(obstacle(booked).time, kNow + 80min);
  Site for_ever;
  for_ever.book({0}, 20min, {});
  EXPECT_EQ(obstacle(for_ever).code, ReasonCode::kBookedOpenEnded);
  EXPECT_FALSE(obstacle(for_ever).time);
  Site planned;
  planned.lease({0}, 10min);
  planned.whole(1);
  EXPECT_EQ(obstacle(planned).text, "GPU 0 is kept for R2 of alice, which came first");
}

TEST(Remedy, NamesTheOptions) {
  using Kind = WayOut::Kind;
  const WayOut time{.kind = Kind::kTime, .lasts = 40min};
  const WayOut swap{.kind = Kind::kSwap};
  EXPECT_EQ(remedy_text({}, LeaseKind::kRun), "");
  EXPECT_EQ(remedy_text({time}, LeaseKind::kRun), "starts now with --timeout 40m");
  EXPECT_EQ(remedy_text({time}, LeaseKind::kReservation), "starts now with --for 40m");
  EXPECT_EQ(remedy_text({time, swap}, LeaseKind::kJob),
            "starts now with --timeout 40m or with --swap");
  EXPECT_EQ(remedy_text({{.kind = Kind::kTime, .lasts = 25h + 5min},
                         {.kind = Kind::kOtherGpus},
                         {.kind = Kind::kMemory, .memory = gib(9)},
                         {.kind = Kind::kMemory, .memory = mib(768)},
                         {.kind = Kind::kCompute},
                         {.kind = Kind::kCompute, .compute = 35},
                         {.kind = Kind::kCount, .count = 2}},
                        LeaseKind::kRun),
            "starts now with --timeout 1d1h, without --gpu-ids, with --memory 9G, with --memory "
            "768M, without --compute, with --compute 35% or with --gpus 2");
}

// If the user follows the remedy, the request starts.
TEST(Remedy, FitsBeforeABookingThatBeginsTooSoon) {
  Site site(8);
  site.book({0, 1, 2, 3, 4, 5, 6, 7}, 40min, 60min);
  site.whole(8);
  ASSERT_EQ(remedy_text(ways_out(site.view(), 0, true, kNow), LeaseKind::kRun),
            "starts now with --timeout 40m");
  site.queue.back().lasts = 40min;
  EXPECT_EQ(decide(site.view(), kNow).grants.size(), 1U);
}

}  // namespace
}  // namespace gpurota::lease
