#include "daemon/tenants/turn_keeper.h"

#include "daemon/gpus/fake_world_test.h"
#include "daemon/history/recorder.h"
#include "daemon/leases/lease_world_test.h"
#include "testing/memory_store.h"

#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;

class TurnKeeperTest : public FakeWorldTest, public Owners {
 protected:
  TurnKeeperTest() {
    world.on_lease = [this](const LeaseEntry& entry, bool gone) {
      ++published;
      turns.on_lease_change(entry, gone);
    };
    world.check_new = [this](const LeaseEntry& entry) { return turns.check_new(entry.lease); };
    turns.refresh();
  }
  void tell_owner(LeaseId, const std::string&) override {}
  static WallTime wall() { return WallTime(1000h); }

  tl::expected<const LeaseEntry*, lease::Refusal> acquire() {
    AcquireRequest request;
    request.uid = 1000;
    request.process = processes.id_of(processes.spawn());
    request.placement.swap = true;
    return world.queue.acquire(request);
  }

  testing::MemoryStore store;
  lease::GrantBook grants;
  Recorder recorder{{loop, nullptr, "", config, processes, gpus, wall}};
  LeaseWorld world{loop, store, processes, gpus, grants, config, wall};
  TurnKeeper turns{
      {loop, config, gpus, world.states, world.tables, world.leases, recorder, world.users, *this}};
  int published = 0;
};

TEST_F(TurnKeeperTest, ALeaseThatCannotBeStoredTakesNoTurns) {
  const std::uint64_t changes = turns.changes();
  std::optional<LeaseId> checked;
  world.check_new = [&](const LeaseEntry& entry) {
    checked = entry.lease.id;
    const auto may = turns.check_new(entry.lease);
    store.set_failure(Error{Code::kUnavailable, 0, "the disk is full"});
    return may;
  };
  ASSERT_FALSE(acquire());
  ASSERT_TRUE(checked);
  EXPECT_FALSE(turns.turns().has_lease(*checked));
  EXPECT_EQ(turns.changes(), changes);
  EXPECT_EQ(published, 0);

  store.set_failure({});
  world.check_new = [this](const LeaseEntry& entry) { return turns.check_new(entry.lease); };
  const auto made = acquire();
  ASSERT_TRUE(made) << made.error().error.message;
  EXPECT_TRUE(turns.turns().has_lease((*made)->lease.id));
}

TEST_F(TurnKeeperTest, ALeaseThatCouldNeverHaveItsTurnIsRefusedAndNotStored) {
  turns.set_outsiders(kGpu, {.of_leases = {}, .unreserved = gib(20)});
  const auto refused = acquire();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().error.code, Code::kLimit) << refused.error().error.message;
  EXPECT_TRUE(store.leases().empty());
  EXPECT_EQ(published, 0);
}

TEST_F(TurnKeeperTest, ChangesAndEndsOfLeasesReachTheTurns) {
  const LeaseId id = (*acquire())->lease.id;
  Lease changed = world.tables.find(id)->lease;
  changed.quantum = 7000ms;
  ASSERT_TRUE(world.leases.change(changed));
  EXPECT_TRUE(turns.turns().has_lease(id));
  world.leases.end(id, EndCause::kReleased, "it was released");
  loop.advance(1s);
  EXPECT_FALSE(world.tables.find(id));
  EXPECT_FALSE(turns.turns().has_lease(id));
}

}  // namespace
}  // namespace gpurota::daemon
