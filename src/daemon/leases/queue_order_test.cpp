#include "daemon/leases/queue_order.h"

#include "daemon/gpus/fake_world_test.h"
#include "daemon/leases/lease_world_test.h"
#include "testing/memory_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uid_t kAlice = 1001, kBob = 1002, kCarol = 1003;

class QueueOrderTest : public FakeWorldTest, public FairShares {
 protected:
  QueueOrderTest() {
    config.fair_share.enabled = true;
    processes.set_user(kAlice, "alice");
    processes.set_user(kBob, "bob");
    processes.set_user(kCarol, "carol");
    world.on_lease = [this](const LeaseEntry&, bool) { world.queue.poke(); };
  }

  std::optional<lease::FairShare> share_of(uid_t uid) override {
    lease::FairShare share;
    share.used = used[uid];
    return share;
  }
  AcquireRequest request(uid_t uid) {
    AcquireRequest request;
    request.uid = uid;
    request.process = processes.id_of(processes.spawn());
    request.ticket = std::to_string(++tickets);
    return request;
  }
  Queue::Place ask(uid_t uid) { return *world.queue.enqueue(request(uid)); }
  std::vector<uid_t> order() {
    world.queue.settle();
    std::vector<uid_t> users;
    for (const QueueEntry& entry : world.tables.requests) users.push_back(entry.asked.uid);
    return users;
  }

  std::size_t place_of(uid_t uid) { return world.order.place_of(uid); }

  std::map<uid_t, std::chrono::seconds> used = {{kAlice, 3h}, {kBob, 41h}, {kCarol, 41h}};
  int tickets = 0;
  WallTime now{1000h};
  testing::MemoryStore store;
  lease::GrantBook grants;
  LeaseWorld world{loop, store, processes, gpus, grants, config, [this] { return now; }, this};
};

TEST_F(QueueOrderTest, TheUserWhoHasUsedLessGetsTheGpuFirst) {
  const LeaseId first = ask(kCarol).lease->lease.id;
  ask(kBob);
  ask(kAlice);
  ask(kCarol);
  ask(kAlice);
  EXPECT_THAT(order(), ElementsAre(kAlice, kAlice, kBob, kCarol));
  const auto& entries = world.tables.requests;
  EXPECT_LT(entries[0].id, entries[1].id) << "requests of one user keep their order";
  EXPECT_EQ(world.order.passing(entries[2]), &entries[1]);
  EXPECT_EQ(world.order.passing(entries[0]), nullptr);
  EXPECT_THAT(entries[2].reason.text, HasSubstr("of alice gets it first"));
  world.leases.end(first, EndCause::kReleased, "it was released");
  loop.advance(1s);
  ASSERT_EQ(world.tables.leases.size(), 1u);
  EXPECT_EQ(world.tables.leases.begin()->second.lease.uid, kAlice);
}

TEST_F(QueueOrderTest, OrderIsThatOfArrivalWithoutFairShare) {
  ask(kCarol);
  ask(kBob);
  ask(kAlice);
  EXPECT_THAT(order(), ElementsAre(kAlice, kBob));
  config.fair_share.enabled = false;
  EXPECT_THAT(order(), ElementsAre(kBob, kAlice));
  const auto& entries = world.tables.requests;
  EXPECT_EQ(world.order.passing(entries[1]), nullptr);
}

TEST_F(QueueOrderTest, ARequestThatWaitedTooLongIsPassedByNoLaterOne) {
  ask(kCarol);
  ask(kBob);
  now += config.fair_share.longest_wait;
  ask(kAlice);
  EXPECT_THAT(order(), ElementsAre(kBob, kAlice));
}

TEST_F(QueueOrderTest, ANewcomerIsPlannedAtItsPlace) {
  ask(kCarol);
  ask(kBob);
  EXPECT_EQ(place_of(kAlice), 0u);
  EXPECT_EQ(place_of(kCarol), 1u);
  const AcquireRequest alice = request(kAlice);
  const auto requests = world.order.requests(&alice);
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].user, "alice");
}

TEST_F(QueueOrderTest, OrderFollowsUseDuringTheWait) {
  ask(kCarol);
  ask(kBob);
  ask(kAlice);
  EXPECT_THAT(order(), ElementsAre(kAlice, kBob));
  used[kAlice] = 50h;
  loop.advance(1min);
  EXPECT_EQ(world.tables.requests.front().asked.uid, kBob);
}

TEST_F(QueueOrderTest, AJobThatLeftForABookingHasItsOldPlaceAlsoAfterARestart) {
  config.fair_share.enabled = false;
  ask(kAlice);  // has the GPU
  now += 1h;
  ask(kBob);
  AcquireRequest back = request(kCarol);
  back.waits_since = now - 30min;
  now += 1h;
  ask(kAlice);
  ASSERT_TRUE(world.queue.enqueue(back));
  EXPECT_THAT(order(), ElementsAre(kCarol, kBob, kAlice));
  AcquireRequest later = request(kCarol);
  later.waits_since = now + 24h;  // the clock was set back meanwhile
  ASSERT_TRUE(world.queue.enqueue(later));
  EXPECT_THAT(order(), ElementsAre(kCarol, kBob, kAlice, kCarol));
}

}  // namespace
}  // namespace gpurota::daemon
