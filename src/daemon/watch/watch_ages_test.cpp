// Tests of state that the watch keeps over readings: memory that no process has, and ages over a
// restart.
#include "daemon/watch/watch_keeper_test.h"

namespace gpurota::daemon {
namespace {

TEST_F(WatchKeeperTest, GpuWithLeftoverMemoryOfALeaseIsNotGranted) {
  const LeaseId id = lease_of(1000, gib(20), {"train"});
  charges[id] = {gib(18)};
  GpuEntry* const gpu = gpus.find(kGpu);
  const auto read = [&](Bytes used) {
    loop.advance(5s);
    sample.used = used;
    gpu->sample = sample;
    gpu->taken = loop.now();
    watch::Reading seen = keeper.reading_of(sample);
    keeper.reckon_hidden(seen);
    world.states.set_unreserved(kGpu, keeper.unreserved(seen));
    keeper.on_sample(seen);
  };
  read(gib(18));
  read(gib(18));
  EXPECT_EQ(world.states.unreserved(kGpu).hidden.bytes, Bytes()) << "its lease is charged for it";
  world.on_lease = [this](const LeaseEntry& entry, bool gone) {
    keeper.on_lease_change(entry, gone);
  };
  processes.die(world.tables.find(id)->main->pid());
  loop.advance(1s);
  ASSERT_FALSE(world.tables.find(id));
  const lease::GpuRoom room = world.rooms.list().front();
  EXPECT_TRUE(room.is_freeing);
  EXPECT_GT(room.hidden, gib(17));
  EXPECT_EQ(room.unreserved_use, Bytes());
  read(gib(18));
  read(gib(18));
  EXPECT_FALSE(world.rooms.list().front().is_freeing);
  EXPECT_GT(world.rooms.list().front().unreserved_use, gib(17)) << "it stays: use without a lease";
  EXPECT_TRUE(world.rooms.list().front().in_unreserved_use);
  EXPECT_EQ(events(proto::EventType::kFindingBegun).size(), 1u);
  read(mib(100));
  EXPECT_EQ(world.states.unreserved(kGpu).all, Bytes());
}

TEST_F(WatchKeeperTest, MemoryImportedFromAnotherLeaseIsCountedOnce) {
  const LeaseId maker = lease_of(1000, gib(8), {"train"});
  const LeaseId importer = lease_of(1000, gib(8), {"serve"});
  const pid_t pid = world.tables.find(importer)->main->pid();
  tenants = {{world.tables.find(maker)->main->pid(), maker}, {pid, importer}};
  charges[maker] = {gib(5)};
  charges[importer] = {gib(5)};
  counted_again = imported[pid] = gib(4);
  use(world.tables.find(maker)->main->pid(), gib(5));
  use(pid, gib(5));
  const auto hidden_of = [&](Bytes used) {
    loop.advance(250ms);
    sample.used = used;
    watch::Reading seen = keeper.reading_of(sample);
    keeper.reckon_hidden(seen);
    return seen.hidden.bytes;
  };
  hidden_of(gib(6));
  loop.advance(1min);  // all programs of the last daemon have connected again
  hidden_of(gib(6));
  EXPECT_EQ(hidden_of(gib(6)), Bytes());
  EXPECT_GT(hidden_of(gib(11)), gib(4)) << "it hides nothing";
  EXPECT_LT(hidden_of(gib(11)), gib(5));
}

TEST_F(WatchKeeperTest, BaselineSurvivesARestart) {
  const auto read = [&](WatchKeeper& by, Bytes used) {
    loop.advance(1s);
    sample.used = used;
    watch::Reading seen = by.reading_of(sample);
    by.reckon_hidden(seen);
    return seen.hidden.bytes;
  };
  for (int second = 0; second < 660; ++second) read(keeper, mib(100));
  EXPECT_EQ(world.states.of(kGpu).baseline->bytes, mib(100));
  loop.advance(10s);
  WatchKeeper next(parts());
  next.restore();
  const LeaseId id = lease_of(1000, gib(8), {"train"});
  charges[id] = {gib(4)};
  for (int second = 0; second < 20; ++second) read(next, gib(4) + mib(100));
  EXPECT_EQ(read(next, gib(4) + mib(100)), Bytes());
  EXPECT_EQ(read(next, gib(4) + mib(600)), mib(500));
  // A daemon without a stored baseline assumes the most that can be normal.
  WatchKeeper other(parts());
  for (int second = 0; second < 20; ++second) read(other, gib(4) + mib(600));
  EXPECT_EQ(read(other, gib(4) + mib(600)), Bytes());
}

TEST_F(WatchKeeperTest, BaselineOfAnotherBootIsMeasuredAnew) {
  world.states.set_baseline(kGpu, {mib(100), "another boot"});
  WatchKeeper next(parts());
  next.restore();
  loop.advance(1s);
  sample.used = mib(500);
  watch::Reading seen = next.reading_of(sample);
  next.reckon_hidden(seen);
  EXPECT_EQ(seen.hidden.bytes, Bytes());
  EXPECT_EQ(world.states.of(kGpu).baseline->bytes, mib(500));
}

TEST_F(WatchKeeperTest, AgeOfAnUnusedLeaseSurvivesAKill) {
  const LeaseId id = lease_of(1000, std::nullopt, {"sleep"});
  config.watch.unused_after = 10min;
  for (int i = 0; i < 9; ++i) {
    on_the_wall += 1min;
    take_sample(1min);
  }
  on_the_wall += 2min;  // no daemon
  loop.advance(2min);
  WatchKeeper next(parts());
  next.restore();
  next.on_sample(next.reading_of(sample));
  const auto seen = next.seen();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].lease, id);
  EXPECT_GE(loop.now() - seen[0].since, 10min);
}

}  // namespace
}  // namespace gpurota::daemon
