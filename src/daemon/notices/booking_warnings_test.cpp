#include "daemon/notices/booking_warnings.h"

#include "daemon/gpus/fake_world_test.h"
#include "daemon/leases/lease_world_test.h"
#include "testing/memory_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uid_t kAlice = 1000, kBob = 1001;

class BookingWarningsTest : public FakeWorldTest, public Owners, public NoticeListener {
 protected:
  BookingWarningsTest() {
    ::setenv("TZ", "UTC0", 1);
    ::tzset();
    processes.set_user(kBob, "bob");
    start();
  }
  ~BookingWarningsTest() override {
    ::unsetenv("TZ");
    ::tzset();
  }
  void start() {
    warnings.reset();
    world.reset();
    grants.emplace();
    world.emplace(loop, store, processes, gpus, *grants, config, [this] { return wall(); });
    warnings.emplace(BookingWarnings::Parts{loop, processes, config, gpus, world->tables, *this,
                                            *this, [this] { return wall(); },
                                            [this](const BookingEntry&) { return in_the_way; }});
    world->on_booking = [this](const BookingNews& news) { warnings->on_booking(news); };
    ASSERT_TRUE(world->leases.restore());
    ASSERT_TRUE(world->bookings.restore());
    warnings->restore();
  }
  // Monday, 23 November 2026, 12:30.
  WallTime wall() const {
    return WallTime(std::chrono::seconds(1795437000)) +
           std::chrono::duration_cast<std::chrono::milliseconds>(loop.now() - begun);
  }
  void tell_owner(LeaseId id, const std::string& text) override {
    terminal.push_back(to_string(id) + " " + text);
  }
  void on_notice(const Notice& notice) override { sent.push_back(notice); }

  RequestId book(WallTime::duration in) {
    AcquireRequest request;
    request.uid = kBob;
    request.kind = LeaseKind::kReservation;
    request.lasts = 1h;
    const auto made = world->bookings.make(request, {wall() + in}, true);
    EXPECT_TRUE(made);
    return made->front();
  }
  LeaseId lease(std::optional<std::chrono::milliseconds> lasts, uid_t uid = kAlice,
                std::optional<Bytes> memory = {}) {
    AcquireRequest request;
    request.uid = uid;
    request.process = processes.id_of(processes.spawn({.uid = uid}));
    request.lasts = lasts;
    const auto made = world->leases.make(request, {LeaseGpu{kGpu, memory, {}}}, std::nullopt);
    EXPECT_TRUE(made);
    return (*made)->lease.id;
  }
  std::vector<std::string> texts(uid_t to) const {
    std::vector<std::string> all;
    for (const Notice& notice : sent) {
      if (notice.to == to) all.push_back(notice.text);
    }
    return all;
  }

  TimePoint begun = loop.now();
  testing::MemoryStore store;
  std::optional<lease::GrantBook> grants;
  std::optional<LeaseWorld> world;
  std::optional<BookingWarnings> warnings;
  std::vector<LeaseId> in_the_way;
  std::vector<std::string> terminal;
  std::vector<Notice> sent;
};

TEST_F(BookingWarningsTest, OwnerIsWarnedADayAnHourFiveMinutesAndAMinuteBefore) {
  book(48h);
  loop.advance(23h + 59min);
  EXPECT_THAT(sent, IsEmpty());
  loop.advance(2min);
  EXPECT_THAT(texts(kBob), ElementsAre("your booking R1 of GPU 0 begins at Wed 12:30; to cancel "
                                       "it: gpurota cancel R1"));
  EXPECT_EQ(sent[0].kind, NoticeKind::kBeginsSoon);
  loop.advance(23h);
  EXPECT_THAT(sent, SizeIs(2));
  loop.advance(55min);
  EXPECT_THAT(sent, SizeIs(3));
  loop.advance(3min + 30s);
  EXPECT_THAT(sent, SizeIs(4));
  loop.advance(2h);
  EXPECT_THAT(sent, SizeIs(4));
}

TEST_F(BookingWarningsTest, OwnersOfBlockingLeasesAreWarnedInTime) {
  book(2h);
  in_the_way = {lease(std::nullopt)};
  loop.advance(1h + 1s);
  EXPECT_THAT(texts(kAlice), ElementsAre("L1: GPU 0 at least until 14:30 (bob's booking R1)"));
  EXPECT_THAT(terminal, ElementsAre("L1 L1: GPU 0 at least until 14:30 (bob's booking R1)"));
  EXPECT_EQ(sent.back().kind, NoticeKind::kLeavesSoon);
  EXPECT_EQ(sent.back().lease, LeaseId{1});
  EXPECT_THAT(sent.back().gpus, ElementsAre("0"));
}

TEST_F(BookingWarningsTest, BookingAtShortNoticeGetsTheRemainingWarnings) {
  book(3min);
  loop.advance(1min);
  EXPECT_THAT(sent, IsEmpty());
  loop.advance(1min + 1s);
  EXPECT_THAT(sent, SizeIs(1));
}

TEST_F(BookingWarningsTest, WarningsAreSentOnceAcrossARestart) {
  book(2h);
  loop.advance(1h + 1s);
  EXPECT_THAT(sent, SizeIs(1));
  start();
  loop.advance(1min);
  EXPECT_THAT(sent, SizeIs(1));
  loop.advance(55min);
  EXPECT_THAT(sent, SizeIs(2));
}

TEST_F(BookingWarningsTest, CancelledBookingCausesNoWarning) {
  const RequestId id = book(2h);
  world->bookings.cancel(id, "it was cancelled by bob", {kBob});
  loop.advance(2h);
  EXPECT_THAT(sent, IsEmpty());
}

TEST_F(BookingWarningsTest, SiteChoosesTheTimesOfWarnings) {
  config.notify.before_booking = {30min};
  book(2h);
  loop.advance(1h + 29min);
  EXPECT_THAT(sent, IsEmpty());
  loop.advance(2min);
  EXPECT_THAT(sent, SizeIs(1));
  config.notify.before_booking = {20min};
  warnings->on_config_change();
  loop.advance(10min);
  EXPECT_THAT(sent, SizeIs(2));
}

}  // namespace
}  // namespace gpurota::daemon
