#include "daemon/leases/bookings.h"

#include "daemon/gpus/fake_world_test.h"
#include "daemon/leases/lease_world_test.h"
#include "testing/fake_history.h"
#include "testing/memory_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uid_t kBob = 1001;

class BookingsTest : public FakeWorldTest {
 protected:
  BookingsTest() {
    config.expired_reservation = config::Expired::kYield;
    start();
  }

  // A new daemon on the same store.
  void start() {
    bookings = nullptr;
    world.reset();
    grants.emplace();
    world.emplace(loop, store, processes, gpus, *grants, config, clock(), nullptr, &history);
    bookings = &world->bookings;
    world->stay_of = [this](LeaseId id) { return stay_of(id); };
    world->set_aside = [this](LeaseId id, bool aside, const std::string& text) {
      aside ? void(orders.insert(id)) : void(orders.erase(id));
      told.push_back(text);
    };
    world->on_booking = [this](const BookingNews& each) { on_booking(each); };
    world->on_lease = [this](const LeaseEntry& entry, bool) {
      if (entry.cause == EndCause::kBooking) left[entry.lease.id] = entry.reason;
      bookings->on_lease_change();
      world->queue.poke();
    };
    ASSERT_TRUE(world->leases.restore());
    ASSERT_TRUE(world->queue.restore());
    ASSERT_TRUE(bookings->restore());
    world->past_bookings.restore();
  }
  // The wall clock, which follows the loop's time and can be set.
  std::function<WallTime()> clock() {
    return [this] {
      return WallTime(1000h) + step +
             std::chrono::duration_cast<std::chrono::milliseconds>(loop.now() - begun);
    };
  }
  WallTime now() { return clock()(); }

  AcquireRequest reservation(std::chrono::milliseconds lasts, uid_t uid = kBob) {
    AcquireRequest request;
    request.uid = uid;
    request.kind = LeaseKind::kReservation;
    request.lasts = lasts;
    return request;
  }
  Result<std::vector<RequestId>> book(WallTime::duration in, std::chrono::milliseconds lasts,
                                      uid_t uid = kBob) {
    return bookings->make(reservation(lasts, uid), {now() + in}, false);
  }
  tl::expected<const LeaseEntry*, lease::Refusal> acquire(
      std::optional<std::chrono::milliseconds> lasts) {
    AcquireRequest request;
    request.uid = 1000;
    request.process = processes.id_of(processes.spawn());
    request.lasts = lasts;
    return world->queue.acquire(request);
  }
  // Like TurnKeeper::stay_of(), on a machine whose host memory has room for `host_room` leases.
  std::optional<LeaseStay> stay_of(LeaseId id) {
    if (!orders.contains(id) && orders.size() >= host_room) return std::nullopt;
    return LeaseStay{gib(1), orders.contains(id) && moves};
  }
  LeaseId swap_lease(Bytes limit) {
    AcquireRequest request;
    request.uid = 1000;
    request.process = processes.id_of(processes.spawn());
    request.placement.memory = SizeSpec{limit, 0};
    request.placement.swap = true;
    const auto lease = world->queue.acquire(request);
    EXPECT_TRUE(lease);
    return lease ? (*lease)->lease.id : LeaseId{};
  }
  // A booking of 12 of the 24 GiB, in two hours, for one hour.
  RequestId book_slice() {
    AcquireRequest request = reservation(1h);
    request.placement.memory = SizeSpec{gib(12), 0};
    const auto made = bookings->make(request, {now() + 2h}, false);
    EXPECT_TRUE(made);
    return made ? made->front() : RequestId{};
  }
  const LeaseEntry* only_lease() {
    const auto& entries = world->tables.leases;
    return entries.size() == 1 ? &entries.begin()->second : nullptr;
  }

  void on_booking(const BookingNews& news) {
    steps.push_back(news.step);
    why = news.why;
  }

  testing::MemoryStore store;
  testing::FakeHistory history;
  std::optional<lease::GrantBook> grants;
  std::optional<LeaseWorld> world;
  Bookings* bookings = nullptr;
  std::vector<BookingStep> steps;
  std::map<LeaseId, std::string> left;  // why each lease left for a booking
  std::set<LeaseId> orders;             // leases that are to be in host memory
  std::vector<std::string> told;        // the reason of each order
  std::size_t host_room = 1;
  bool moves = true;  // orders are carried out at once
  std::string why;
  TimePoint begun = loop.now();
  std::chrono::milliseconds step{0};
};

TEST_F(BookingsTest, BookingIsStoredAndBecomesAReservationOnTime) {
  const auto made = book(2h, 1h);
  ASSERT_TRUE(made);
  EXPECT_THAT(store.requests(), SizeIs(1));
  loop.advance(2h - 1s);
  EXPECT_EQ(only_lease(), nullptr);
  loop.advance(1s);
  ASSERT_TRUE(only_lease());
  EXPECT_EQ(only_lease()->lease.uid, kBob);
  EXPECT_EQ(only_lease()->lease.kind, LeaseKind::kReservation);
  EXPECT_EQ(*only_lease()->lease.ends, WallTime(1003h));
  EXPECT_THAT(store.requests(), IsEmpty());
  EXPECT_THAT(world->tables.bookings, IsEmpty());
  EXPECT_THAT(steps, ElementsAre(BookingStep::kMade, BookingStep::kSoon, BookingStep::kBegun));
  loop.advance(1h + 1s);
  EXPECT_EQ(only_lease(), nullptr) << "its time is over";
}

TEST_F(BookingsTest, OnlyALeaseThatEndsBeforeABookingMayHaveItsGpu) {
  config.bookings.open_ended = config::Bookings::OpenEnded::kWait;
  ASSERT_TRUE(book(2h, 1h));
  const auto endless = acquire(std::nullopt);
  ASSERT_FALSE(endless);
  EXPECT_THAT(endless.error().error.message, HasSubstr("GPU 0 is free until "));
  EXPECT_FALSE(acquire(2h + 1s));
  EXPECT_TRUE(acquire(2h));
}

TEST_F(BookingsTest, WorkWithoutAStatedEndContinuesUntilABookingIsUsed) {
  const auto made = book(2h, 1h);
  EXPECT_FALSE(acquire(2h + 1s)) << "a stated time is never cut, so it has to fit";
  const auto lease = acquire(std::nullopt);
  ASSERT_TRUE(lease);
  const LeaseId work = (*lease)->lease.id;
  EXPECT_EQ(bookings->claim(made->front()).error().code, Code::kInvalid) << "not yet";
  loop.advance(2h + 20min);
  ASSERT_TRUE(only_lease());
  EXPECT_EQ(only_lease()->lease.id, work);
  EXPECT_FALSE(only_lease()->cause);
  EXPECT_TRUE(world->tables.find_booking(made->front())->waits_for_use);
  EXPECT_FALSE(world->tables.find_booking(made->front())->trouble);
  EXPECT_EQ(steps.back(), BookingStep::kReady);
  const auto claimed = bookings->claim(made->front());
  ASSERT_TRUE(claimed);
  EXPECT_FALSE(claimed->lease);
  EXPECT_EQ(world->tables.find(work)->cause, EndCause::kBooking);
  EXPECT_EQ(world->tables.find(work)->reason, "1001 began to use booking R1");
  loop.advance(config.grace + 1s);
  ASSERT_TRUE(only_lease());
  EXPECT_EQ(only_lease()->lease.uid, kBob);
  EXPECT_EQ(*only_lease()->lease.ends, WallTime(1003h)) << "its end is what it was";
  EXPECT_EQ(bookings->claim(made->front())->lease, only_lease()->lease.id);
}

TEST_F(BookingsTest, OnTimeBookingBeginsWithoutUse) {
  ASSERT_TRUE(bookings->make(reservation(1h), {now() + 2h}, true, true));
  const auto work = acquire(std::nullopt);
  ASSERT_TRUE(work);
  loop.advance(2h);
  const LeaseEntry* const leaving = world->tables.find((*work)->lease.id);
  ASSERT_TRUE(leaving);
  EXPECT_EQ(leaving->reason, "booking R1 of 1001 has begun");
  loop.advance(config.grace + 1s);
  ASSERT_TRUE(only_lease());
  EXPECT_EQ(only_lease()->lease.uid, kBob);
}

TEST_F(BookingsTest, ASwapLeaseIsInHostMemoryAsLongAsABookedSliceLasts) {
  const RequestId booking = book_slice();
  const LeaseId work = swap_lease(gib(20));
  loop.advance(2h + 1min);
  EXPECT_THAT(orders, IsEmpty()) << "nobody uses it";
  ASSERT_TRUE(bookings->claim(booking));
  EXPECT_THAT(orders, ElementsAre(work));
  EXPECT_EQ(told.back(), "L1 is moved to host memory: 1001 begins to use booking R1");
  loop.advance(1s);
  ASSERT_EQ(world->tables.leases.size(), 2U) << "the booking has begun beside it";
  const auto booked_is_used = [work](LeaseId id) { return id != work; };
  world->holds_memory = booked_is_used;
  loop.advance(10min);
  EXPECT_THAT(orders, ElementsAre(work));
  // A new daemon gives the same orders.
  orders.clear();
  start();
  loop.advance(1s);
  EXPECT_THAT(orders, ElementsAre(work));
  EXPECT_EQ(told.back(), "L1 is moved to host memory: booking R1 of 1001 lasts");
  world->holds_memory = booked_is_used;
  loop.advance(40min);
  EXPECT_THAT(orders, ElementsAre(work));
  world->holds_memory = {};
  loop.advance(20min);
  EXPECT_THAT(orders, IsEmpty());
  EXPECT_EQ(told.back(), "L1 takes turns again");
  ASSERT_TRUE(only_lease());
  EXPECT_EQ(only_lease()->lease.id, work);
  EXPECT_FALSE(only_lease()->cause);
}

TEST_F(BookingsTest, ABookedSliceThatNobodyUsesKeepsNoSwapLeaseInHostMemoryForLong) {
  const RequestId booking = book_slice();
  const LeaseId work = swap_lease(gib(20));
  loop.advance(2h);
  ASSERT_TRUE(bookings->claim(booking));
  loop.advance(1s);
  ASSERT_EQ(world->tables.leases.size(), 2U);
  loop.advance(29min);
  EXPECT_THAT(orders, ElementsAre(work));
  loop.advance(3min);
  EXPECT_THAT(orders, IsEmpty());
  ASSERT_TRUE(only_lease());
  EXPECT_EQ(only_lease()->lease.id, work);
}

TEST_F(BookingsTest, ASwapLeaseThatCannotBeMovedEndsForABookedSlice) {
  const RequestId booking = book_slice();
  const LeaseId work = swap_lease(gib(20));
  moves = false;
  loop.advance(2h);
  ASSERT_TRUE(bookings->claim(booking));
  EXPECT_THAT(orders, ElementsAre(work));
  loop.advance(50s);
  EXPECT_THAT(left, IsEmpty()) << "its memory is being moved";
  loop.advance(11s);
  EXPECT_EQ(left[work],
            "1001 began to use booking R1, and its memory could not be moved to the host in time");
  loop.advance(config.grace + 1s);
  ASSERT_TRUE(only_lease());
  EXPECT_EQ(only_lease()->lease.uid, kBob);
}

TEST_F(BookingsTest, OnlyAsManySwapLeasesAreMovedAsHostMemoryHasRoomFor) {
  const RequestId booking = book_slice();
  const LeaseId one = swap_lease(gib(20));
  const LeaseId other = swap_lease(gib(20));
  loop.advance(2h);
  ASSERT_TRUE(bookings->claim(booking));
  EXPECT_THAT(orders, ElementsAre(one));
  EXPECT_EQ(left[other],
            "1001 began to use booking R1, and host memory has no room for its memory");
  loop.advance(config.grace + 1s);
  EXPECT_TRUE(world->tables.find(one));
  EXPECT_EQ(world->tables.leases.size(), 2U);
}

TEST_F(BookingsTest, NoOtherBookingBeginsBecauseOneHasMovedASwapLease) {
  const RequestId used = book_slice();
  AcquireRequest request = reservation(10h, 1002);
  request.placement.memory = SizeSpec{gib(8), 0};
  const auto unused = bookings->make(request, {now() + 2h}, false);
  ASSERT_TRUE(unused);
  const LeaseId work = swap_lease(gib(20));
  loop.advance(2h);
  ASSERT_TRUE(bookings->claim(used));
  loop.advance(1min);
  EXPECT_THAT(orders, ElementsAre(work));
  ASSERT_TRUE(world->tables.find_booking(unused->front()));
  EXPECT_TRUE(world->tables.find_booking(unused->front())->waits_for_use);
  loop.advance(1h);
  EXPECT_THAT(orders, IsEmpty()) << "the booking that was used is over";
  ASSERT_TRUE(bookings->claim(unused->front()));
  loop.advance(1s);
  EXPECT_THAT(orders, ElementsAre(work));
  EXPECT_FALSE(world->tables.find_booking(unused->front())) << "it has begun";
}

TEST_F(BookingsTest, ASwapLeaseComesBackWhenTheBookingThatMovesItIsCancelled) {
  const RequestId booking = book_slice();
  swap_lease(gib(20));
  moves = false;
  loop.advance(2h);
  ASSERT_TRUE(bookings->claim(booking));
  EXPECT_THAT(orders, SizeIs(1));
  ASSERT_TRUE(bookings->cancel(booking, "no longer needed", {}));
  EXPECT_THAT(orders, IsEmpty());
}

TEST_F(BookingsTest, LeaseKnowsADayAheadWhenItLeaves) {
  const auto made = book(30h, 1h);
  const WallTime begins = now() + 30h;
  const auto lease = acquire(std::nullopt);
  ASSERT_TRUE(lease);
  const LeaseId work = (*lease)->lease.id;
  const auto leaves = [&] { return world->tables.find(work)->lease.leaves; };
  loop.advance(5h);
  EXPECT_EQ(leaves(), std::nullopt);
  loop.advance(1h + 1min);
  EXPECT_EQ(leaves(), begins);
  EXPECT_THAT(bookings->leaving_for(*world->tables.find_booking(made->front())), ElementsAre(work));
  loop.advance(24h + 10min);
  EXPECT_TRUE(world->tables.find_booking(made->front())->waits_for_use);
  EXPECT_EQ(leaves(), begins) << "it can be used at any moment";
  EXPECT_TRUE(bookings->cancel(made->front(), "it was cancelled by bob", {kBob}));
  EXPECT_EQ(leaves(), std::nullopt);
}

TEST_F(BookingsTest, LeaseThatNeedNotLeaveHasNoLeavingTime) {
  const auto own = book(2h, 1h, 1000);
  const auto lease = acquire(std::nullopt);
  ASSERT_TRUE(lease);
  loop.advance(1min);
  EXPECT_EQ((*lease)->lease.leaves, std::nullopt) << "it is the owner's own work";
  EXPECT_THAT(bookings->leaving_for(*world->tables.find_booking(own->front())), IsEmpty());
}

TEST_F(BookingsTest, LeaseIsNotLeavingForAnUnusedBooking) {
  ASSERT_TRUE(book(2h, 10h));
  const auto lease = acquire(std::nullopt);
  ASSERT_TRUE(lease);
  const LeaseId work = (*lease)->lease.id;
  loop.advance(2h + 1min);
  EXPECT_TRUE(world->tables.find(work)->lease.leaves);
  loop.advance(10h);
  EXPECT_THAT(world->tables.bookings, IsEmpty());
  EXPECT_EQ(world->tables.find(work)->lease.leaves, std::nullopt);
}

TEST_F(BookingsTest, LeavingTimeSurvivesARestart) {
  const auto made = book(2h, 1h);
  const WallTime begins = now() + 2h;
  const auto lease = acquire(std::nullopt);
  ASSERT_TRUE(lease);
  const LeaseId work = (*lease)->lease.id;
  const auto leaves = [&] { return world->tables.find(work)->lease.leaves; };
  loop.advance(1s);
  start();
  loop.advance(1s);
  EXPECT_EQ(leaves(), begins);
  // The booking ends without the daemon's knowledge.
  ASSERT_TRUE(store.remove_request(made->front()));
  start();
  loop.advance(1s);
  EXPECT_EQ(leaves(), std::nullopt);
}

TEST_F(BookingsTest, ALeaseStaysWhereTheBookingMovesToAFreeGpu) {
  GpuInfo second = gpus.entries().front().info;
  second.uuid = GpuUuid{"GPU-b"};
  second.index = 1;
  gpus = GpuTable({gpus.entries().front().info, second});
  start();
  const auto made = book(2h, 1h);
  const GpuUuid kept = world->tables.find_booking(made->front())->kept.front();
  AcquireRequest request;
  request.uid = 1000;
  request.process = processes.id_of(processes.spawn());
  request.placement.gpus = {kept};
  const auto lease = world->queue.acquire(request);
  ASSERT_TRUE(lease);
  const LeaseId work = (*lease)->lease.id;
  const auto leaves = [&] { return world->tables.find(work)->lease.leaves; };
  loop.advance(1s);
  EXPECT_EQ(leaves(), std::nullopt) << "another GPU is free";
  request.placement.gpus = {kept == kGpu ? second.uuid : kGpu};
  request.process = processes.id_of(processes.spawn());
  const auto other = world->queue.acquire(request);
  ASSERT_TRUE(other);
  const LeaseId youngest = (*other)->lease.id;
  loop.advance(1s);
  const bool first = leaves().has_value();
  const bool last = world->tables.find(youngest)->lease.leaves.has_value();
  EXPECT_NE(first, last) << "one of them is enough";
  world->leases.end(youngest, EndCause::kReleased, "it was released");
  loop.advance(config.grace + 1s);
  EXPECT_EQ(leaves(), std::nullopt) << "it moves there";
}

TEST_F(BookingsTest, BookingEndsNoLeaseOfItsOwner) {
  const auto made = book(2h, 1h, 1000);
  const auto lease = acquire(std::nullopt);
  ASSERT_TRUE(lease);
  loop.advance(2h + 1min);
  const auto claimed = bookings->claim(made->front());
  ASSERT_TRUE(claimed);
  EXPECT_FALSE((*lease)->cause);
  EXPECT_THAT(claimed->why, HasSubstr("L1"));
}

TEST_F(BookingsTest, UnusedBookingEndsWhenARequestWaits) {
  ASSERT_TRUE(book(2h, 10h));
  loop.advance(2h + 45min);
  ASSERT_TRUE(only_lease()) << "nobody waits";
  AcquireRequest waits;
  waits.uid = 1000;
  waits.process = processes.id_of(processes.spawn());
  waits.ticket = "0af3";
  ASSERT_TRUE(world->queue.enqueue(waits));
  loop.advance(1min + config.grace + 1s);
  ASSERT_TRUE(only_lease());
  EXPECT_EQ(only_lease()->lease.uid, 1000U);
}

TEST_F(BookingsTest, LeaseStaysWhenAnUnusedBookingEnds) {
  AcquireRequest booked = reservation(10h);
  booked.placement.memory = SizeSpec{gib(16), 0};
  ASSERT_TRUE(bookings->make(booked, {now() + 2h}, false));
  AcquireRequest open_ended;
  open_ended.uid = 1000;
  open_ended.process = processes.id_of(processes.spawn());
  open_ended.placement.memory = SizeSpec{gib(12), 0};
  const auto work = world->queue.acquire(open_ended);
  ASSERT_TRUE(work);
  const LeaseId id = (*work)->lease.id;
  loop.advance(2h + 20min);
  AcquireRequest waits = open_ended;
  waits.process = processes.id_of(processes.spawn());
  waits.ticket = "0af3";
  ASSERT_TRUE(world->queue.enqueue(waits));
  EXPECT_TRUE(world->tables.find(id)->lease.leaves) << "the booking may still be used";
  loop.advance(11min);
  EXPECT_THAT(world->tables.bookings, IsEmpty());
  EXPECT_EQ(world->tables.find(id)->lease.leaves, std::nullopt);
  EXPECT_EQ(world->tables.leases.size(), 2U) << "the request was served";
}

TEST_F(BookingsTest, UsedBookingStaysAlthoughARequestWaits) {
  const auto made = book(2h, 10h);
  loop.advance(2h + 1min);
  ASSERT_TRUE(bookings->claim(made->front())->lease);
  start();
  AcquireRequest waits;
  waits.uid = 1000;
  waits.process = processes.id_of(processes.spawn());
  waits.ticket = "0af3";
  ASSERT_TRUE(world->queue.enqueue(waits));
  loop.advance(3h);
  ASSERT_TRUE(only_lease());
  EXPECT_EQ(only_lease()->lease.uid, kBob);
}

TEST_F(BookingsTest, UseOfABookingSurvivesARestart) {
  const auto made = book(2h, 1h);
  const auto lease = acquire(std::nullopt);
  ASSERT_TRUE(lease);
  loop.advance(2h + 1min);
  EXPECT_FALSE(world->tables.find_booking(made->front())->used);
  ASSERT_TRUE(bookings->claim(made->front()));
  start();
  ASSERT_TRUE(world->tables.find_booking(made->front()));
  EXPECT_TRUE(world->tables.find_booking(made->front())->used);
}

TEST_F(BookingsTest, BookingIsRefusedOnAGpuOfALeaseWithoutATimeLimit) {
  const auto lease = acquire(std::nullopt);
  ASSERT_TRUE(lease);
  const auto refused = book(2h, 1h);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kLimit);
  EXPECT_THAT(refused.error().message, HasSubstr("(L1) on GPU 0 has no time limit"));
  EXPECT_THAT(store.requests(), IsEmpty());
}

TEST_F(BookingsTest, LeaseIsNotExtendedIntoABooking) {
  const auto lease = acquire(1h);
  ASSERT_TRUE(lease);
  const LeaseId id = (*lease)->lease.id;
  ASSERT_TRUE(book(2h, 1h));
  UpdateRequest longer{};
  longer.lasts = 3h;
  longer.beyond_limits = true;
  const auto refused = world->updates.update(id, longer);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("has booked a GPU of L1 from "));
  EXPECT_THAT(refused.error().message, HasSubstr("(R1): ask for 120 min at most"));
  longer.lasts = 2h;
  EXPECT_TRUE(world->updates.update(id, longer));
}

TEST_F(BookingsTest, ABookingBeginsAlsoIfItsShareIsAboveALimitThatWasLoweredLater) {
  AcquireRequest request = reservation(1h);
  request.placement.memory = SizeSpec{gib(8), 0};
  request.placement.compute.least = 50;
  ASSERT_TRUE(bookings->make(request, {now() + 2h}, false));
  config.limits.everyone.compute = 20;
  ASSERT_TRUE(world->users.resolve(1s, {}));
  loop.advance(2h + 1s);
  ASSERT_TRUE(only_lease());
  EXPECT_EQ(only_lease()->lease.compute().least, 50);
}

TEST_F(BookingsTest, OwnBookingsCountAgainstTheLimitOfALargerShare) {
  config.limits.everyone.compute = 50;
  ASSERT_TRUE(world->users.resolve(1s, {}));
  AcquireRequest request = reservation(1h, 1000);
  request.placement.memory = SizeSpec{gib(8), 0};
  request.placement.compute.least = 40;
  ASSERT_TRUE(bookings->make(request, {now() + 2h}, false));
  request.placement.compute.least = 10;
  request.lasts = 4h;
  request.kind = LeaseKind::kRun;
  request.process = processes.id_of(processes.spawn());
  const auto lease = world->queue.acquire(request);
  ASSERT_TRUE(lease) << lease.error().error.message;
  UpdateRequest update{};
  update.compute = ComputeShare{50, 0};
  const auto refused = world->updates.update((*lease)->lease.id, update);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("has booked a GPU of L1"));
  update.beyond_limits = true;
  EXPECT_TRUE(world->updates.update((*lease)->lease.id, update)) << "by an administrator";
}

TEST_F(BookingsTest, SeveralBookingsAreMadeOrNone) {
  ASSERT_TRUE(book(48h, 1h));
  const auto refused =
      bookings->make(reservation(2h, 1002), {now() + 24h, now() + 47h + 30min}, false);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("has booked GPU 0 (R1) until "));
  EXPECT_THAT(world->tables.bookings, SizeIs(1));
  const auto made = bookings->make(reservation(2h, 1002), {now() + 24h, now() + 72h}, false);
  ASSERT_TRUE(made);
  EXPECT_THAT(*made, SizeIs(2));
}

TEST_F(BookingsTest, NumberAndDistanceAreLimitedExceptForAdministrators) {
  config.limits.everyone.bookings = 1;
  config.limits.everyone.book_ahead = 72h;
  ASSERT_TRUE(world->users.resolve(1s, {}));
  const auto far = book(73h, 1h);
  ASSERT_FALSE(far);
  EXPECT_THAT(far.error().message, HasSubstr("the site allows you to book 3 days ahead"));
  ASSERT_TRUE(book(24h, 1h));
  const auto second = book(48h, 1h);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("the site allows you 1 booking; you have 1"));
  EXPECT_TRUE(bookings->make(reservation(1h), {now() + 1000h}, true));
}

TEST_F(BookingsTest, WeeklyGpuHoursAreBoundedExceptForAdministrators) {
  ASSERT_TRUE(book(24h, 40h));
  const auto more = book(96h, 8h);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, Code::kLimit);
  EXPECT_THAT(more.error().message, HasSubstr("has booked 40 of 42 GPU hours of the 7 days from"));
  EXPECT_TRUE(book(96h, 8h, 0)) << "root is an administrator";
  EXPECT_TRUE(book(120h, 42h, 1002)) << "whose bookings do not count";
  const auto all = book(170h, 10h, 1003);
  ASSERT_FALSE(all);
  EXPECT_THAT(all.error().message, HasSubstr("all users together have booked 82 of 84"));
  const auto longer = book(600h, 73h);
  ASSERT_FALSE(longer);
  EXPECT_THAT(longer.error().message, HasSubstr("bookings of 3 days at most"));
}

TEST_F(BookingsTest, BegunBookingCountsForItsDurationAfterARestart) {
  ASSERT_TRUE(book(1h, 40h));
  loop.advance(1h + 1s);
  ASSERT_TRUE(only_lease());
  EXPECT_FALSE(book(50h, 8h)) << "it runs";
  start();
  EXPECT_FALSE(book(50h, 8h)) << "it is known after a restart";
  loop.advance(20h);
  ASSERT_TRUE(only_lease());
  world->leases.end(only_lease()->lease.id, EndCause::kReleased, "it was released");
  loop.advance(2s);
  ASSERT_EQ(only_lease(), nullptr);
  start();
  EXPECT_FALSE(book(50h, 23h)) << "20 hours are used";
  EXPECT_TRUE(book(50h, 21h));
}

TEST_F(BookingsTest, CancelledBookingFreesItsGpu) {
  const auto made = book(2h, 1h);
  ASSERT_TRUE(made);
  EXPECT_TRUE(bookings->cancel(made->front(), "it was cancelled by bob", {kBob}));
  EXPECT_FALSE(bookings->cancel(made->front(), "again", {kBob}));
  EXPECT_THAT(store.requests(), IsEmpty());
  EXPECT_TRUE(acquire(std::nullopt));
  loop.advance(3h);
  EXPECT_THAT(steps, ElementsAre(BookingStep::kMade, BookingStep::kCancelled));
}

TEST_F(BookingsTest, BookingSurvivesARestartAndBeginsLate) {
  ASSERT_TRUE(book(2h, 1h));
  start();
  ASSERT_THAT(world->tables.bookings, SizeIs(1));
  EXPECT_EQ(world->tables.bookings[0].kept, std::vector{kGpu});
  step = 2h + 30min;  // nobody was there
  start();
  loop.advance(1s);
  ASSERT_TRUE(only_lease());
  EXPECT_EQ(*only_lease()->lease.ends, WallTime(1003h)) << "its end stays";
}

TEST_F(BookingsTest, BookingWhoseTimeIsOverIsReportedAsMissed) {
  ASSERT_TRUE(book(2h, 1h));
  step = 4h;
  start();
  loop.advance(1s);
  EXPECT_EQ(only_lease(), nullptr);
  EXPECT_EQ(steps.back(), BookingStep::kMissed);
  EXPECT_EQ(why, "gpurotad did not run then, or the clock was set forward");
  EXPECT_THAT(store.requests(), IsEmpty());
}

TEST_F(BookingsTest, WallClockDecidesWhenABookingBegins) {
  ASSERT_TRUE(book(2h, 1h));
  step = 2h;
  loop.advance(1min);
  ASSERT_TRUE(only_lease()) << "it was set forward, and is looked at each minute";
}

TEST_F(BookingsTest, BookingThatCannotBeginRetriesAndReportsWhy) {
  ASSERT_TRUE(book(2h, 1h));
  ASSERT_TRUE(world->states.set_draining(kGpu, true, "fan"));
  loop.advance(2h - 1min);
  EXPECT_THAT(steps, ElementsAre(BookingStep::kMade, BookingStep::kTrouble));
  EXPECT_THAT(why, HasSubstr("GPU 0 is draining: fan"));
  loop.advance(10min);
  EXPECT_EQ(only_lease(), nullptr);
  ASSERT_TRUE(world->tables.bookings[0].trouble);
  EXPECT_THAT(world->tables.bookings[0].trouble->text, HasSubstr("draining"));
  ASSERT_TRUE(world->states.set_draining(kGpu, false, ""));
  loop.advance(1s);
  ASSERT_TRUE(only_lease());
}

TEST_F(BookingsTest, LaterRequestDoesNotDelayABooking) {
  config.bookings.min_unbooked = 3h;
  ASSERT_TRUE(book(2h, 1h));
  AcquireRequest waits;
  waits.uid = 1000;
  waits.process = processes.id_of(processes.spawn());
  waits.ticket = "0af3";
  ASSERT_TRUE(world->queue.enqueue(waits));
  loop.advance(1h + 50min);
  EXPECT_EQ(only_lease(), nullptr);
  loop.advance(10min);
  EXPECT_THAT(steps, ElementsAre(BookingStep::kMade, BookingStep::kSoon, BookingStep::kBegun));
  loop.advance(1h + 1s);
  ASSERT_TRUE(only_lease());
  EXPECT_EQ(only_lease()->lease.uid, 1000U);
}

TEST_F(BookingsTest, ExpiredReservationEndsForABooking) {
  AcquireRequest first = reservation(1h, 1000);
  const auto lease = world->queue.acquire(first);
  ASSERT_TRUE(lease);
  ASSERT_TRUE(book(2h, 1h));
  // A program of the lease's user still uses the lease.
  world->leases.cover((*lease)->lease.id, processes.id_of(processes.spawn()));
  loop.advance(90min);
  ASSERT_TRUE(only_lease());
  EXPECT_EQ(only_lease()->lease.state, LeaseState::kExpired);
  loop.advance(30min + config.grace + 1s);
  ASSERT_TRUE(only_lease());
  EXPECT_EQ(only_lease()->lease.uid, kBob);
}

TEST_F(BookingsTest, NothingIsPromisedBehindAReservationThatMayContinue) {
  config.expired_reservation = config::Expired::kKeep;
  ASSERT_TRUE(world->queue.acquire(reservation(1h, 1000)));
  const auto refused = book(2h, 1h);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("has no time limit"));
}

TEST_F(BookingsTest, BookingThatCannotBeStoredIsRefused) {
  store.set_failure(Error{Code::kIo, ENOSPC, "disk full"});
  const auto refused = book(2h, 1h);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("cannot store the booking: disk full"));
  EXPECT_THAT(world->tables.bookings, IsEmpty());
}

}  // namespace
}  // namespace gpurota::daemon
