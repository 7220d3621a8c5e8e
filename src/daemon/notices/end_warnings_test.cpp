#include "daemon/notices/end_warnings.h"

#include "daemon/gpus/fake_world_test.h"
#include "daemon/leases/lease_world_test.h"
#include "testing/memory_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class EndWarningsTest : public FakeWorldTest, public Owners {
 protected:
  EndWarningsTest() { start(); }

  // A new daemon on the same store and the same processes.
  void start() {
    warnings.reset();
    world.reset();
    grants.emplace();
    world.emplace(loop, store, processes, gpus, *grants, config, [this] { return wall(); });
    warnings.emplace(
        EndWarnings::Parts{loop, world->tables, world->leases, *this, [this] { return wall(); }});
    world->on_lease = [this](const LeaseEntry& entry, bool gone) {
      warnings->on_lease_change(entry, gone);
      world->bookings.on_lease_change();
    };
    ASSERT_TRUE(world->leases.restore());
    ASSERT_TRUE(world->bookings.restore());
    warnings->restore();
  }
  WallTime wall() const {
    return WallTime(12h) + step +
           std::chrono::duration_cast<std::chrono::milliseconds>(loop.now() - begun);
  }
  void tell_owner(LeaseId, const std::string& text) override { told.push_back(text); }

  LeaseId lease(std::optional<std::chrono::milliseconds> lasts, EndWarning warning) {
    AcquireRequest request;
    request.uid = 1000;
    request.process = processes.id_of(processes.spawn());
    request.lasts = lasts;
    request.warning = warning;
    const LeaseId id = (*world->queue.acquire(request))->lease.id;
    command = processes.spawn({.parent = request.process.pid});
    EXPECT_TRUE(world->leases.start(id, command, false));
    return id;
  }
  // The signals that the command has had.
  std::vector<int> signals() const {
    std::vector<int> all;
    for (const auto& [pid, signal] : processes.signals()) {
      if (pid == command) all.push_back(signal);
    }
    return all;
  }
  RequestId book(WallTime::duration in, bool on_time) {
    AcquireRequest request;
    request.uid = 1001;
    request.kind = LeaseKind::kReservation;
    request.lasts = 1h;
    const auto made = world->bookings.make(request, {wall() + in}, true, on_time);
    EXPECT_TRUE(made);
    return made->front();
  }
  void extend(LeaseId id, std::chrono::milliseconds lasts) {
    UpdateRequest request{};
    request.lasts = lasts;
    ASSERT_TRUE(world->updates.update(id, request));
  }

  TimePoint begun = loop.now();
  std::chrono::milliseconds step{0};
  testing::MemoryStore store;
  std::optional<lease::GrantBook> grants;
  std::optional<LeaseWorld> world;
  std::optional<EndWarnings> warnings;
  std::vector<std::string> told;
  pid_t command = 0;
};

TEST_F(EndWarningsTest, TheProgramIsSignalledOnceAheadOfItsTimeLimit) {
  lease(1h, {10min, SIGUSR1});
  loop.advance(49min + 59s);
  EXPECT_THAT(signals(), IsEmpty());
  loop.advance(1s);
  EXPECT_THAT(signals(), ElementsAre(SIGUSR1));
  EXPECT_THAT(told, ElementsAre("L1 ends in 10 minutes: SIGUSR1 was sent to 1 of its processes"));
  loop.advance(9min);
  EXPECT_THAT(signals(), ElementsAre(SIGUSR1));
}

TEST_F(EndWarningsTest, ALeaseWithoutAWarningGetsNone) {
  lease(1h, {});
  loop.advance(59min);
  EXPECT_THAT(signals(), IsEmpty());
}

TEST_F(EndWarningsTest, LeavingTimeCountsAsAnEnd) {
  const LeaseId id = lease(std::nullopt, {10min, SIGUSR2});
  loop.advance(24h);
  EXPECT_THAT(signals(), IsEmpty());
  set_leaving(world->tables, world->leases, id, wall() + 30min);
  loop.advance(19min);
  EXPECT_THAT(signals(), IsEmpty());
  loop.advance(2min);
  EXPECT_THAT(signals(), ElementsAre(SIGUSR2));
  set_leaving(world->tables, world->leases, id, std::nullopt);
  loop.advance(1h);
  set_leaving(world->tables, world->leases, id, wall() + 5min);
  loop.advance(1s);
  EXPECT_THAT(signals(), ElementsAre(SIGUSR2, SIGUSR2)) << "another end, known late: at once";
}

TEST_F(EndWarningsTest, TheProgramIsSignalledAheadOfABookingThatItLeavesFor) {
  book(2h, true);
  const LeaseId id = lease(std::nullopt, {10min, SIGUSR1});
  loop.advance(1h + 49min);
  EXPECT_THAT(signals(), IsEmpty());
  start();
  loop.advance(1min);
  EXPECT_THAT(signals(), ElementsAre(SIGUSR1));
  EXPECT_THAT(told, ElementsAre("L1 leaves for a booking in 10 minutes at the earliest: SIGUSR1 "
                                "was sent to 1 of its processes"));
  loop.advance(10min);
  ASSERT_TRUE(world->tables.find(id));
  EXPECT_EQ(world->tables.find(id)->cause, EndCause::kBooking);
}

TEST_F(EndWarningsTest, CancelledBookingIsNoLongerAnEnd) {
  const RequestId first = book(2h, false);
  const LeaseId id = lease(std::nullopt, {10min, SIGUSR1});
  loop.advance(1h + 51min);
  EXPECT_THAT(signals(), ElementsAre(SIGUSR1));
  world->bookings.cancel(first, "it was cancelled by bob", {1001});
  EXPECT_FALSE(world->tables.find(id)->lease.warned);
  loop.advance(1h);
  EXPECT_THAT(signals(), ElementsAre(SIGUSR1));
}

TEST_F(EndWarningsTest, PostponedEndIsWarnedOfAgain) {
  const LeaseId id = lease(1h, {10min, SIGUSR1});
  loop.advance(51min);
  EXPECT_THAT(signals(), ElementsAre(SIGUSR1));
  extend(id, 8min);
  loop.advance(1min);
  EXPECT_THAT(signals(), ElementsAre(SIGUSR1)) << "it is warned of an end that is near";
  extend(id, 1h);
  loop.advance(49min);
  EXPECT_THAT(signals(), ElementsAre(SIGUSR1));
  loop.advance(2min);
  EXPECT_THAT(signals(), ElementsAre(SIGUSR1, SIGUSR1));
}

TEST_F(EndWarningsTest, AProgramThatDoesNotHandleTheSignalIsSparedUntilItDoes) {
  lease(1h, {10min, SIGUSR1});
  processes.set_unhandled(command, true);
  loop.advance(51min);
  EXPECT_THAT(signals(), IsEmpty()) << "the signal would end it";
  EXPECT_THAT(told, IsEmpty());
  processes.set_unhandled(command, false);
  loop.advance(2min);
  EXPECT_THAT(signals(), ElementsAre(SIGUSR1));
}

TEST_F(EndWarningsTest, WarningIsSentOnceAcrossARestart) {
  const LeaseId id = lease(1h, {10min, SIGUSR1});
  start();
  loop.advance(51min);
  EXPECT_THAT(signals(), ElementsAre(SIGUSR1));
  start();
  loop.advance(1min);
  EXPECT_THAT(signals(), ElementsAre(SIGUSR1));
  EXPECT_EQ(store.leases().at(id).warning, (EndWarning{10min, SIGUSR1}));
}

TEST_F(EndWarningsTest, AWarningThatWasDueWhileNoDaemonRanComesAtTheNextStart) {
  lease(1h, {10min, SIGUSR1});
  step = 55min;
  start();
  loop.advance(1s);
  EXPECT_THAT(signals(), ElementsAre(SIGUSR1));
}

TEST_F(EndWarningsTest, TheWarningOfALeaseChanges) {
  const LeaseId id = lease(1h, {10min, SIGUSR1});
  UpdateRequest request{};
  request.warning = EndWarning{};
  ASSERT_TRUE(world->updates.update(id, request));
  loop.advance(55min);
  EXPECT_THAT(signals(), IsEmpty());
  request.warning = EndWarning{2min, SIGTERM};
  ASSERT_TRUE(world->updates.update(id, request));
  loop.advance(2min);
  EXPECT_THAT(signals(), IsEmpty());
  loop.advance(1min + 1s);
  ASSERT_FALSE(signals().empty());
  EXPECT_EQ(signals().front(), SIGTERM);
}

TEST_F(EndWarningsTest, AClockThatIsSetBackWarnsAtTheNewTime) {
  lease(1h, {10min, SIGUSR1});
  step = -30min;
  loop.advance(55min);
  EXPECT_THAT(signals(), IsEmpty());
  loop.advance(26min);
  EXPECT_THAT(signals(), ElementsAre(SIGUSR1));
}

}  // namespace
}  // namespace gpurota::daemon
