#include "lease/request_queue.h"

#include "lease/reason.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::lease {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const WallTime kNow{100h};

GpuUuid gpu(int index) { return GpuUuid{"GPU-" + std::to_string(index)}; }

// A machine with a queue that a test fills by hand.
struct Lab {
  explicit Lab(int count = 4) {
    for (int i = 0; i < count; ++i) {
      GpuRoom room;
      room.info.index = i;
      room.info.uuid = gpu(i);
      room.info.name = "H100";
      room.info.memory = room.capacity = gib(80);
      rooms.push_back(room);
    }
  }
  Request& wait(PlacementRequest placement, std::optional<std::chrono::minutes> lasts = {},
                LeaseKind kind = LeaseKind::kRun) {
    queue.push_back({RequestId{++last_request}, kind, "alice", std::move(placement), lasts});
    return queue.back();
  }
  Request& whole(int count, std::optional<std::chrono::minutes> lasts = {}) {
    return wait({count, {}, {}, {}}, lasts);
  }
  Request& slice(Bytes size, std::optional<std::chrono::minutes> lasts = {}) {
    return wait({1, {}, SizeSpec{size, 0}, {}}, lasts);
  }
  Request& named(std::vector<GpuUuid> gpus, std::optional<std::chrono::minutes> lasts = {}) {
    return wait({1, std::move(gpus), {}, {}}, lasts);
  }
  Occupant& lease(const std::vector<int>& gpus, std::optional<std::chrono::minutes> left = {},
                  std::optional<Bytes> limit = {}) {
    Occupant occupant;
    occupant.id = LeaseId{++last_lease};
    occupant.kind = left ? LeaseKind::kReservation : LeaseKind::kRun;
    occupant.user = "bob";
    for (const int index : gpus) occupant.gpus.push_back({gpu(index), limit, {}});
    if (left) occupant.ends = kNow + *left;
    leases.push_back(occupant);
    return leases.back();
  }
  QueueDecision decide() const {
    return lease::decide({queue, rooms, leases, topology, {}, &keeping}, kNow);
  }
  std::vector<std::uint64_t> granted() const {
    std::vector<std::uint64_t> ids;
    for (const Grant& grant : decide().grants) ids.push_back(grant.request.value);
    return ids;
  }
  // The reason that the waiting request gets.
  std::string reason(std::uint64_t id) const {
    for (const Waiting& waiting : decide().waiting) {
      if (waiting.request.value != id) continue;
      return waiting_reason(waiting).text;
    }
    return "not waiting";
  }

  std::vector<Request> queue;
  std::vector<GpuRoom> rooms;
  std::vector<Occupant> leases;
  Topology topology;
  Keeping keeping;
  std::uint64_t last_request = 0, last_lease = 0;
};

TEST(RequestQueue, RequestsThatFitStartInTheirOrder) {
  Lab lab;
  lab.whole(1);
  lab.whole(2);
  lab.whole(2);
  lab.whole(1);
  EXPECT_THAT(lab.granted(), ElementsAre(1, 2)) << "the fourth must not pass the third";
}

TEST(RequestQueue, IfOnlyTheUsersLimitIsInTheWayALeaseOfThatUserIsNamed) {
  Lab lab(1);
  for (const uid_t uid : {1001, 1000}) {
    Occupant& lease = lab.lease({0}, {}, gib(8));
    lease.uid = uid;
    lease.gpus[0].compute.least = uid == 1000 ? 40 : 10;
  }
  Request& request = lab.slice(gib(8));
  request.placement.compute.least = 40;
  request.uid = 1000;
  request.most_compute = 50;
  EXPECT_THAT(lab.reason(1), HasSubstr("L2"));
  request.placement.compute.least = 50;
  request.most_compute = 95;
  EXPECT_THAT(lab.reason(1), HasSubstr("L1"));
}

TEST(RequestQueue, RequestIsGrantedAsAWholeOrNotAtAll) {
  Lab lab(3);
  lab.lease({0});
  lab.whole(3);
  EXPECT_THAT(lab.granted(), IsEmpty());
}

TEST(RequestQueue, GpusOfTheHeadAreReservedAndShownAsReserved) {
  Lab lab(3);
  lab.lease({0});
  lab.whole(3);
  const auto decision = lab.decide();
  EXPECT_THAT(decision.held,
              ElementsAre(std::pair(gpu(1), RequestId{1}), std::pair(gpu(2), RequestId{1})));
  EXPECT_EQ(decision.waiting.front().free, 2);
}

// The request keeps its place: it is first to get what it needs whenever all of that is free.
TEST(RequestQueue, GpuReservedForTooLongIsReleasedToOthers) {
  Lab lab(3);
  lab.lease({0});
  lab.whole(3);
  lab.whole(1);
  EXPECT_THAT(lab.granted(), IsEmpty());
  EXPECT_THAT(lab.decide().keeping.blocked, ElementsAre(RequestId{2}));
  EXPECT_THAT(lab.decide().keeping.kept, ElementsAre(gpu(1)));
  lab.keeping.pass(lab.decide().keeping, std::chrono::minutes(59));
  EXPECT_THAT(lab.granted(), IsEmpty());
  lab.keeping.pass(lab.decide().keeping, std::chrono::minutes(1));
  EXPECT_THAT(lab.granted(), ElementsAre(2));
  EXPECT_EQ(lab.decide().held.size(), 1U) << "the other free GPU has been kept from nobody";
  EXPECT_THAT(lab.reason(1), HasSubstr("2 of 3 GPUs are free for it; "));
  lab.leases.clear();
  EXPECT_THAT(lab.granted(), ElementsAre(1));
}

// The clocks belong to the blocked requests and to the GPU. So two requests that wait for the same
// GPU keep the GPU no longer than a single request would.
TEST(RequestQueue, RequestsThatCanNeverStartKeepAGpuForAnHourTogether) {
  Lab lab(3);
  lab.lease({0});
  lab.lease({1});
  lab.named({gpu(0), gpu(2)});
  lab.named({gpu(1), gpu(2)});
  lab.whole(1);
  lab.keeping.pass(lab.decide().keeping, std::chrono::minutes(60));
  EXPECT_THAT(lab.granted(), ElementsAre(3));
  lab.queue.pop_back();
  lab.whole(1);
  EXPECT_THAT(lab.granted(), ElementsAre(4)) << "a newcomer waits no hour of its own";
}

TEST(RequestQueue, TheFirstIsProtectedOnceItHasWaitedLongAndItsStartIsKnown) {
  Lab lab(2);
  lab.lease({0}, std::chrono::hours(20));
  lab.whole(2);
  lab.whole(1);
  lab.keeping.pass(lab.decide().keeping, std::chrono::hours(2));
  EXPECT_THAT(lab.granted(), ElementsAre(2));
  lab.queue.front().waited = std::chrono::hours(24);
  EXPECT_THAT(lab.granted(), IsEmpty());
  EXPECT_EQ(lab.decide().keeping.protected_request, RequestId{1});
  // The protection ends after a day, in which the request should have started.
  lab.keeping.pass(lab.decide().keeping, std::chrono::hours(24));
  EXPECT_THAT(lab.granted(), ElementsAre(2));
}

// canhazgpu's mistake: it tried an immediate allocation first, without checking the queue.
TEST(RequestQueue, NewRequestDoesNotTakeGpusOfTheHead) {
  Lab lab(2);
  lab.lease({0});
  lab.whole(2);
  lab.whole(1);
  EXPECT_THAT(lab.granted(), IsEmpty());
}

// canhazgpu's mistake: a first request that waited for one GPU blocked all other requests.
TEST(RequestQueue, HeadThatWaitsForOneGpuDoesNotBlockOtherGpus) {
  Lab lab(3);
  lab.lease({1});
  lab.named({gpu(1)});
  lab.whole(2);
  EXPECT_THAT(lab.granted(), ElementsAre(2));
}

TEST(RequestQueue, ARequestBehindTheHeadIsNotPassedEither) {
  Lab lab(4);
  lab.lease({3});
  lab.lease({0});
  lab.named({gpu(3)});  // the head waits for one GPU
  lab.whole(3);         // and this one for all others, two of which are free
  lab.whole(1);
  EXPECT_THAT(lab.granted(), IsEmpty());
}

TEST(RequestQueue, LeaseThatEndsBeforeTheHeadsStartMayUseReservedGpus) {
  Lab lab(2);
  lab.lease({0}, 60min);
  lab.whole(2);
  lab.whole(1, 90min);
  lab.whole(1, 45min);
  EXPECT_THAT(lab.granted(), ElementsAre(3));
}

TEST(RequestQueue, OnlyFillersUseReservedGpusWhileTheStartIsUnknown) {
  Lab lab(2);
  lab.lease({0});
  lab.whole(2);
  lab.whole(1, 1min);
  lab.wait({1, {}, {}, {}}, {}, LeaseKind::kFiller);
  EXPECT_THAT(lab.granted(), ElementsAre(3));
}

TEST(RequestQueue, FillersEndWhenARequestNeedsTheirGpu) {
  Lab lab(2);
  lab.lease({0});
  lab.lease({1}).kind = LeaseKind::kFiller;
  lab.whole(1);
  EXPECT_THAT(lab.decide().grants, IsEmpty());
  EXPECT_THAT(lab.decide().evict, ElementsAre(LeaseId{2}));
  lab.leases.back().ending = true;
  EXPECT_THAT(lab.decide().evict, IsEmpty());
  lab.leases.pop_back();
  EXPECT_THAT(lab.granted(), ElementsAre(1));
}

TEST(RequestQueue, FillersDoNotDelayLeasesThatTakeTurns) {
  Lab lab(3);
  lab.lease({0}).kind = LeaseKind::kFiller;
  lab.whole(3);
  lab.wait({1, {}, {}, {}}, {}, LeaseKind::kFiller);
  EXPECT_THAT(lab.decide().evict, ElementsAre(LeaseId{1}));
  EXPECT_THAT(lab.decide().grants, IsEmpty()) << "it would have to go at once";
}

TEST(RequestQueue, FillerLeavesOnlyIfNoOtherGpuIsFree) {
  Lab lab(2);
  lab.lease({0}).kind = LeaseKind::kFiller;
  lab.whole(1);
  EXPECT_THAT(lab.granted(), ElementsAre(1));
  EXPECT_THAT(lab.decide().evict, IsEmpty());
}

TEST(RequestQueue, RequestThatEndsAFillerIsNotified) {
  Lab lab(1);
  lab.lease({0}).kind = LeaseKind::kFiller;
  lab.whole(1);
  EXPECT_EQ(lab.decide().waiting.front().way_made, "0");
  EXPECT_EQ(lab.reason(1), "a filler is leaving GPU 0");
}

TEST(RequestQueue, NoLeaseSharesAGpuWithAFiller) {
  Lab lab(1);
  lab.lease({0}, {}, gib(8)).kind = LeaseKind::kFiller;
  lab.slice(gib(8));
  EXPECT_THAT(lab.granted(), IsEmpty());
  EXPECT_THAT(lab.decide().evict, ElementsAre(LeaseId{1}));
  Lab taken(1);
  taken.lease({0}, {}, gib(8));
  taken.wait({1, {}, SizeSpec{gib(8), 0}, {}}, {}, LeaseKind::kFiller);
  EXPECT_THAT(taken.granted(), IsEmpty());
  Lab idle(1);
  idle.wait({1, {}, SizeSpec{gib(8), 0}, {}}, {}, LeaseKind::kFiller);
  ASSERT_THAT(idle.granted(), ElementsAre(1));
  EXPECT_EQ(idle.decide().grants.front().gpus.front().limit, gib(8));
}

TEST(RequestQueue, ASliceMayNotKeepAWholeGpuAwayFromTheHead) {
  Lab lab(1);
  lab.lease({0}, {}, gib(8));
  lab.whole(1);
  lab.slice(gib(8));
  EXPECT_THAT(lab.granted(), IsEmpty());
}

TEST(RequestQueue, SlicesShareTheRemainder) {
  Lab lab(1);
  lab.lease({0}, {}, gib(30));
  lab.slice(gib(30));
  lab.slice(gib(30));
  lab.slice(gib(20));
  EXPECT_THAT(lab.granted(), ElementsAre(1)) << "the third would take what the second waits for";
}

// canhazgpu's mistake: it queued "GPU ID 99 is out of range" for ever, and `--gpus 100` took all
// eight.
TEST(RequestQueue, ImpossibleRequestFailsAtOnceAndHoldsNothing) {
  Lab lab;
  lab.whole(9);
  lab.named({gpu(99)});
  lab.slice(gib(81));
  lab.whole(4);
  const auto decision = lab.decide();
  ASSERT_EQ(decision.impossible.size(), 3u);
  EXPECT_THAT(decision.impossible[0].second.message, HasSubstr("this machine has 4"));
  EXPECT_THAT(lab.granted(), ElementsAre(4));
}

TEST(RequestQueue, ARequestForAGpuOutOfServiceHoldsNothing) {
  Lab lab(2);
  lab.rooms[0].draining = true;
  lab.rooms[0].drain_reason = "fan";
  lab.whole(2);
  lab.whole(1);
  EXPECT_THAT(lab.granted(), ElementsAre(2));
  EXPECT_EQ(lab.reason(1), "GPU 0 is draining: fan");
}

TEST(RequestQueue, GpuInUnreservedUseIsSkippedUnlessTakenOver) {
  Lab lab(1);
  lab.rooms[0].unreserved_use = gib(20);
  lab.rooms[0].in_unreserved_use = true;
  lab.rooms[0].unreserved_by = {{1000, gib(20)}};
  lab.whole(1);
  EXPECT_THAT(lab.granted(), IsEmpty());
  EXPECT_THAT(lab.reason(1), HasSubstr("in use without a lease"));
  lab.queue[0].placement.take_over = 1000;
  EXPECT_THAT(lab.granted(), ElementsAre(1));
  lab.rooms[0].unreserved_use = gib(21);  // 1 GiB of another user's
  EXPECT_THAT(lab.granted(), IsEmpty());
}

// Memory that is held is not available to others, whoever holds it.
TEST(RequestQueue, MemoryAboveALeasesLimitIsNotGivenToOthers) {
  Lab lab(2);
  lab.slice(gib(40));
  EXPECT_EQ(lab.decide().grants.at(0).gpus.at(0).uuid, gpu(0)) << "which would be chosen else";
  lab.rooms[0].above_limits = gib(70);
  EXPECT_EQ(lab.decide().grants.at(0).gpus.at(0).uuid, gpu(1));
  lab.rooms[1].above_limits = gib(70);
  EXPECT_THAT(lab.granted(), IsEmpty());
}

TEST(RequestQueue, ReasonNamesTheEarlierRequest) {
  Lab lab(2);
  lab.lease({0});
  lab.whole(2);
  lab.named({gpu(1)});
  EXPECT_EQ(lab.reason(2), "GPU 1 is kept for R1 of alice, which came first");
}

TEST(RequestQueue, EndingLeaseStillHoldsItsGpu) {
  Lab lab(1);
  lab.lease({0}).ending = true;
  lab.whole(1);
  lab.whole(1, 1min);
  EXPECT_THAT(lab.granted(), IsEmpty());
  EXPECT_THAT(lab.reason(1), HasSubstr("is ending"));
}

TEST(RequestQueue, LeasePastItsEndStillHoldsItsGpu) {
  Lab lab(1);
  lab.lease({0}, -5min);
  lab.whole(1);
  EXPECT_THAT(lab.granted(), IsEmpty());
}

TEST(RequestQueue, PositionsCountWaitingRequestsOnly) {
  Lab lab(1);
  lab.whole(1);
  lab.whole(1);
  lab.whole(1);
  const auto decision = lab.decide();
  ASSERT_EQ(decision.waiting.size(), 2u);
  EXPECT_EQ(decision.waiting[0].request, RequestId{2});
  EXPECT_EQ(decision.waiting[0].position, 1);
  EXPECT_EQ(decision.waiting[1].position, 2);
}

TEST(RequestQueue, ALongQueueIsKeptInOrder) {
  Lab lab(1);
  lab.lease({0});
  for (int i = 0; i < kMaxPlanned + 10; ++i) lab.whole(1);
  const auto decision = lab.decide();
  EXPECT_EQ(decision.waiting.size(), static_cast<std::size_t>(kMaxPlanned) + 10);
  EXPECT_THAT(lab.reason(kMaxPlanned + 1), HasSubstr("128 requests are ahead of it"));
}

TEST(GpuChoice, UsersLastGpuIsPreferredThenTheLongestIdle) {
  Lab lab(3);
  for (int i = 0; i < 3; ++i)
    lab.rooms[static_cast<std::size_t>(i)].idle_since = WallTime(std::chrono::hours(9 - i));
  lab.whole(1);
  EXPECT_EQ(lab.decide().grants[0].gpus[0].uuid, gpu(2));
  lab.queue[0].placement.preferred = {gpu(1)};
  EXPECT_EQ(lab.decide().grants[0].gpus[0].uuid, gpu(1));
}

TEST(GpuChoice, SeveralGpusAreChosenCloseTogether) {
  Lab lab(4);
  // Two boards: 0 and 2, 1 and 3.
  lab.topology = Topology({{gpu(0), gpu(2), Closeness::kNvlink},
                           {gpu(1), gpu(3), Closeness::kNvlink},
                           {gpu(0), gpu(1), Closeness::kAcrossNodes},
                           {gpu(0), gpu(3), Closeness::kAcrossNodes},
                           {gpu(2), gpu(1), Closeness::kAcrossNodes},
                           {gpu(2), gpu(3), Closeness::kAcrossNodes}});
  lab.rooms[0].idle_since = WallTime(5h);  // so that the pair without GPU 0 is idle longest
  lab.whole(2);
  const auto grants = lab.decide().grants;
  EXPECT_EQ(grants[0].gpus[0].uuid, gpu(1));
  EXPECT_EQ(grants[0].gpus[1].uuid, gpu(3));
}

TEST(GpuChoice, SeveralGpusAreOfOneModelOnAMixedMachine) {
  Lab lab(4);
  lab.rooms[0].info.name = lab.rooms[3].info.name = "A4000";
  lab.lease({3});
  lab.whole(2);
  const auto grants = lab.decide().grants;
  EXPECT_EQ(grants[0].gpus[0].uuid, gpu(1));
  EXPECT_EQ(grants[0].gpus[1].uuid, gpu(2));
}

TEST(GpuChoice, ACardThatIsTooSmallIsNotConsidered) {
  Lab lab(2);
  lab.rooms[0].info.memory = lab.rooms[0].capacity = gib(16);
  lab.slice(gib(24));
  lab.slice(gib(24));
  EXPECT_EQ(lab.decide().grants[0].gpus[0].uuid, gpu(1));
  EXPECT_EQ(lab.decide().grants[1].gpus[0].uuid, gpu(1));
}

TEST(WaitingReason, NamesAMigInstanceByItsGpuAndItsPlace) {
  Lab lab(2);
  lab.rooms[0].info.mig_enabled = true;
  lab.rooms[1].info.parent = gpu(0);
  lab.rooms[1].info.index = 0;
  lab.lease({1});
  lab.whole(1);
  EXPECT_THAT(lab.reason(1), HasSubstr("GPU 0:0: "));
}

}  // namespace
}  // namespace gpurota::lease
