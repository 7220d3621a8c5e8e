#include "watch/hidden_memory.h"

#include "watch/watcher_test.h"

#include <gtest/gtest.h>

#include <random>

namespace gpurota::watch {
namespace {

class HiddenMemoryTest : public ::testing::Test {
 protected:
  HiddenMemoryTest() {
    reading.gpu = kGpu;
    reading.size = gib(80);
  }

  Hidden read(Duration later = 250ms) {
    now += later;
    return memory.read(reading, rules, now);
  }
  Hidden read_for(Duration time, Duration step = 250ms) {
    Hidden hidden;
    for (Duration passed{}; passed < time; passed += step) hidden = read(step);
    return hidden;
  }
  // A machine that has been idle for long: its normal use is known.
  void idle_with(Bytes used) {
    reading.used = used;
    read_for(11min, 1s);
  }
  SeenLease charged(LeaseId id, Bytes limit, Bytes charge) const {
    SeenLease lease = slice(id, kAlice, limit);
    lease.charge = charge;
    return lease;
  }

  HiddenMemory memory;
  HiddenRules rules;
  Reading reading;
  TimePoint now{};
};

TEST_F(HiddenMemoryTest, MemoryExplainedByProcessesAndChargesIsNotHidden) {
  idle_with(mib(300));
  reading.leases = {charged(kLease, gib(20), gib(12))};
  reading.processes = {process(10, kAlice, gib(11), kLease), process(11, kBob, gib(3))};
  reading.used = gib(15) + mib(300);
  EXPECT_EQ(read_for(30s), (Hidden{.is_known = true}));
}

TEST_F(HiddenMemoryTest, FiftyGibibytesFromBeforeTheStartAreLeavingAndThenUse) {
  reading.used = gib(50);
  Hidden hidden = read();
  const Bytes beyond = gib(50) - Bytes(gib(80).count() / 100);
  EXPECT_EQ(hidden, (Hidden{.is_known = true, .bytes = beyond, .is_leaving = true}));
  hidden = read_for(10s);
  EXPECT_EQ(hidden, (Hidden{.is_known = true, .bytes = beyond, .in_use = true}));
  EXPECT_EQ(read_for(3h, 1s).bytes, beyond) << "so much is never taken for normal";
}

TEST_F(HiddenMemoryTest, MemoryOfTheDriverBesideEachProcessIsNotHidden) {
  idle_with(Bytes());
  reading.leases = {charged(kLease, gib(70), gib(60))};
  reading.used = gib(60);
  for (pid_t pid = 1; pid <= 200; ++pid) {
    reading.processes.push_back(process(pid, kAlice, Bytes(gib(60).count() / 200), kLease));
    *reading.used += mib(9);
  }
  EXPECT_EQ(read_for(20s).bytes, Bytes());
}

TEST_F(HiddenMemoryTest, AllocationDuringAReadingIsNotHidden) {
  // The driver answers two separate queries: for the memory in use, and for the processes.
  idle_with(Bytes());
  std::mt19937 random(3);
  for (int i = 0; i < 1000; ++i) {
    reading.processes = {process(10, kBob, random() % 2 == 0 ? Bytes() : gib(4))};
    reading.used = random() % 2 == 0 ? Bytes() : gib(4);
    EXPECT_FALSE(read().in_use);
  }
}

TEST_F(HiddenMemoryTest, HiddenMemoryIsFoundBesideASlice) {
  reading.used = gib(50);
  read_for(12s);
  reading.leases = {charged(kLease, gib(2), gib(1))};
  reading.used = gib(51);
  read();
  const Hidden beside = read();
  EXPECT_TRUE(beside.in_use);
  EXPECT_GT(beside.bytes, gib(49));
  EXPECT_LT(beside.bytes, gib(50));
}

TEST_F(HiddenMemoryTest, ADesktopOfSixHundredMebibytesIsNormalAfterTenMinutes) {
  idle_with(Bytes());
  reading.used = mib(600);
  Hidden hidden = read();
  EXPECT_EQ(hidden, (Hidden{.is_known = true, .bytes = mib(600)}));
  hidden = read_for(8min, 1s);
  EXPECT_EQ(hidden.bytes, mib(600));
  EXPECT_FALSE(hidden.in_use) << "little is never use without a lease";
  EXPECT_EQ(read_for(4min, 1s).bytes, Bytes());
}

TEST_F(HiddenMemoryTest, ADesktopThatDrawsBesideAListedServerIsNormal) {
  SeenProcess server = process(1, 0, mib(100));
  server.graphics = true;
  reading.processes = {server};
  reading.used = mib(700);
  EXPECT_EQ(read_for(12min, 1s).bytes, Bytes());
  reading.processes.push_back(process(10, kBob, gib(3)));
  *reading.used += gib(3);
  EXPECT_EQ(read().bytes, Bytes());
}

TEST_F(HiddenMemoryTest, MemoryThatAnOldDriverReportsAsUsedIsNormalBesideLeases) {
  reading.leases = {charged(kLease, gib(20), gib(20))};
  reading.used = gib(20) + mib(780);
  EXPECT_EQ(read_for(1min, 1s).bytes, Bytes()) << "no idle reading yet: doubt is for giving";
  reading.leases.clear();
  reading.used = mib(780);
  read_for(11min, 1s);
  reading.leases = {charged(kLease, gib(20), gib(20))};
  reading.used = gib(20) + mib(780);
  EXPECT_EQ(read_for(2h, 1s).bytes, Bytes()) << "known for as long as the GPU is busy";
}

TEST_F(HiddenMemoryTest, ClientsOfMpsAreChargedAndTheirServerIsListedOrNormal) {
  // The driver lists only the server, and counts its clients' memory as the server's.
  reading.leases = {charged(kLease, gib(20), gib(9))};
  reading.processes = {process(99, 0, gib(9) + mib(400))};
  reading.used = gib(9) + mib(400);
  EXPECT_EQ(read_for(20s).bytes, Bytes());
  // A server that is not listed.
  reading.leases.clear();
  reading.processes.clear();
  idle_with(mib(420));
  reading.leases = {charged(kLease, gib(20), gib(9))};
  reading.used = gib(9) + mib(420);
  read();
  EXPECT_EQ(read_for(20s).bytes, Bytes());
}

TEST_F(HiddenMemoryTest, AKilledProcessOfSeventyGibibytesLeaves) {
  idle_with(Bytes());
  reading.leases = {charged(kLease, gib(75), gib(70))};
  reading.processes = {process(10, kAlice, gib(70), kLease)};
  reading.used = gib(70);
  read();
  // The process is dead: the driver no longer lists it, and has not freed its memory yet.
  reading.processes.clear();
  EXPECT_EQ(read().bytes, Bytes()) << "its lease is still charged for it";
  reading.leases.clear();
  Hidden hidden = memory.after_change(reading, rules, now);
  EXPECT_EQ(hidden, (Hidden{.is_known = true, .bytes = gib(70), .is_leaving = true}));
  reading.used = gib(20);
  EXPECT_TRUE(read().is_leaving);
  reading.used = Bytes();
  EXPECT_EQ(read(), (Hidden{.is_known = true}));
}

TEST_F(HiddenMemoryTest, LeftoverOfAWholeGpuLeaseExpiresToo) {
  idle_with(Bytes());
  reading.leases = {exclusive(kLease, kAlice)};
  reading.used = gib(70);
  EXPECT_EQ(read(), Hidden()) << "beside one that may have all of it nothing can be told";
  reading.leases.clear();
  EXPECT_TRUE(memory.after_change(reading, rules, now).is_leaving);
  EXPECT_FALSE(memory.after_change(reading, rules, now).in_use);
}

TEST_F(HiddenMemoryTest, DaemonInItsOwnPidNamespaceFindsNoHiddenMemory) {
  idle_with(Bytes());
  // No process is listed: there are only grants, and what is reserved for contexts.
  reading.leases = {charged(kLease, gib(20), gib(12) + mib(600)),
                    charged(LeaseId{2}, gib(20), gib(5))};
  reading.used = gib(17) + mib(518);
  EXPECT_EQ(read_for(1min).bytes, Bytes());
  // The listed pids belong to no process here.
  SeenProcess stranger = process(4000000, std::nullopt, gib(12) + mib(518));
  stranger.gone = true;
  reading.processes = {stranger};
  EXPECT_EQ(read_for(1min).bytes, Bytes());
}

TEST_F(HiddenMemoryTest, IsNotComputedIfAProcessHasNoFigure) {
  reading.used = gib(50);
  EXPECT_TRUE(read_for(12s).in_use);
  reading.processes = {process(10, kBob, Bytes())};
  reading.processes[0].used.reset();
  EXPECT_EQ(read(), Hidden());
}

TEST_F(HiddenMemoryTest, KeepsTheLastFigureWhileChargesChangeOrMemoryMoves) {
  idle_with(Bytes());
  reading.leases = {charged(kLease, gib(40), gib(10))};
  reading.used = gib(40);
  EXPECT_EQ(read_for(12s).bytes, gib(30));
  reading.leases[0].charge = gib(2);  // the lease has freed what the reading still shows
  EXPECT_EQ(read().bytes, gib(30));
  EXPECT_EQ(read().bytes, gib(38)) << "now it is still there";
  reading.leases[0].moving = true;
  reading.used = gib(60);
  EXPECT_EQ(read().bytes, gib(38));
  reading.used = gib(5);
  EXPECT_EQ(read().bytes, gib(5)) << "but never more than no process is listed for";
}

TEST_F(HiddenMemoryTest, LeaseThatKeepsAllocatingDoesNotHideUseForEver) {
  idle_with(Bytes());
  reading.leases = {charged(kLease, gib(40), gib(10))};
  reading.processes = {process(10, kAlice, gib(10), kLease)};
  reading.used = gib(50);
  read_for(12s);
  std::mt19937 random(7);
  for (int i = 0; i < 1000; ++i) {
    const Bytes charge = gib(5 + random() % 20);
    reading.leases[0].charge = charge;
    reading.processes[0].used = charge;
    reading.used = charge + gib(40);
    EXPECT_TRUE(read().in_use);
  }
  for (int i = 0; i < 3; ++i) {
    reading.leases[0].charge = gib(5 + random() % 20);
    reading.processes[0].used = reading.leases[0].charge;
    reading.used = reading.leases[0].charge;
    EXPECT_EQ(read().bytes, Bytes()) << "and is not accused of what has gone";
  }
}

// Alice's lease has allocated 4 GiB of the 5 that it is charged for, and lease 2 has imported them.
class ImportedMemoryTest : public HiddenMemoryTest {
 protected:
  ImportedMemoryTest() {
    idle_with(Bytes());
    reading.leases = {charged(kLease, gib(20), gib(5) + kBesideProcess),
                      charged(LeaseId{2}, gib(20), gib(5) + kBesideProcess)};
    reading.processes = {process(10, kAlice, gib(5), kLease),
                         process(11, kBob, gib(1), LeaseId{2})};
    reading.processes[1].imported = gib(4);
    reading.counted_again = gib(4);
    reading.used = gib(6) + kBesideProcess + kBesideProcess;
    read();
  }
};

TEST_F(ImportedMemoryTest, IsCountedOnceWhicheverProcessTheDriverShowsItFor) {
  for (const Bytes shown : {gib(1), gib(5)}) {
    reading.processes[1].used = shown;
    EXPECT_EQ(read().bytes, Bytes());
    *reading.used += gib(4);
    EXPECT_EQ(read().bytes, gib(4)) << "nothing is hidden by it";
    *reading.used -= gib(4);
  }
  reading.processes.clear();
  EXPECT_EQ(read().bytes, Bytes()) << "in a pid namespace of its own";
}

TEST_F(ImportedMemoryTest, MemoryOfAnEndedExporterCountsForOneImporter) {
  reading.leases[0] = charged(LeaseId{3}, gib(20), gib(5) + kBesideProcess);
  reading.processes[0] = process(12, kBob, gib(1), LeaseId{3});
  reading.processes[0].imported = gib(4);
  read();
  EXPECT_EQ(read().bytes, Bytes());
  *reading.used += gib(4);
  EXPECT_EQ(read().bytes, gib(4));
  // Then the other lease ends: one importer is left.
  reading.leases.erase(reading.leases.begin());
  reading.processes.erase(reading.processes.begin());
  reading.counted_again = Bytes();
  reading.used = gib(5) + kBesideProcess;
  read();
  EXPECT_EQ(read().bytes, Bytes());
  *reading.used += gib(4);
  EXPECT_EQ(read().bytes, gib(4));
}

TEST_F(ImportedMemoryTest, MemoryWithinOneLeaseIsChargedOnce) {
  reading.leases = {charged(kLease, gib(20), gib(6) + kBesideProcess + kBesideProcess)};
  reading.processes[1].lease = kLease;
  reading.counted_again = Bytes();
  read();
  for (const Bytes shown : {gib(1), gib(5)}) {
    reading.processes[1].used = shown;
    EXPECT_EQ(read().bytes, Bytes());
    *reading.used += gib(4);
    EXPECT_EQ(read().bytes, gib(4));
    *reading.used -= gib(4);
  }
}

TEST_F(ImportedMemoryTest, ImportThatBeginsOrEndsBetweenTwoReadingsIsNoUse) {
  reading.counted_again = Bytes();  // the lease has reported its charge, but not yet its memory
  EXPECT_EQ(read().bytes, Bytes());
  reading.counted_again = gib(4);
  EXPECT_EQ(memory.after_change(reading, rules, now).bytes, Bytes());
  EXPECT_EQ(read().bytes, Bytes());
  reading.leases[1].charge -= gib(4);
  reading.counted_again = Bytes();
  reading.processes[1].imported = Bytes();
  EXPECT_EQ(read().bytes, Bytes());
  EXPECT_EQ(read().bytes, Bytes());
}

TEST_F(ImportedMemoryTest, HidesNoLessThanTheListedMemory) {
  reading.leases[0].charge = reading.leases[1].charge = Bytes();  // neither is charged yet
  reading.processes[1].used = gib(5);
  read();
  EXPECT_EQ(read().bytes, Bytes());
}

TEST_F(HiddenMemoryTest, ConfiguredBaselineTakesPrecedenceOverTheMeasuredOne) {
  rules.unlisted = gib(2);
  reading.used = gib(2);
  EXPECT_EQ(read_for(20s).bytes, Bytes());
  rules.unlisted = Bytes();
  EXPECT_EQ(read().bytes, gib(2));
}

TEST_F(HiddenMemoryTest, SiteThresholdHasAMinimum) {
  rules.threshold = Bytes();
  idle_with(Bytes());
  reading.used = mib(900);
  EXPECT_FALSE(read_for(20s).in_use);
  rules.threshold = gib(4);
  reading.used = gib(3);
  const Hidden little = read_for(20s);
  EXPECT_EQ(little, (Hidden{.is_known = true, .bytes = gib(3)}));
  reading.used = gib(5);
  EXPECT_TRUE(read_for(12s).in_use);
  reading.used = gib(4) - mib(100);
  EXPECT_TRUE(read().in_use) << "what flickers around the threshold is one use";
  reading.used = gib(3);
  EXPECT_FALSE(read().in_use);
}

TEST_F(HiddenMemoryTest, BaselineOfTheLastDaemonIsNormalBesideLeases) {
  memory.restore(kGpu, mib(100));
  reading.leases = {charged(kLease, gib(20), gib(10))};
  reading.used = gib(10) + mib(600);
  read();
  EXPECT_EQ(read().bytes, mib(500)) << "what is assumed while nothing is known would hide it";
  reading.used = gib(10) + mib(100);
  EXPECT_EQ(read().bytes, Bytes());
}

TEST_F(HiddenMemoryTest, AStoredBaselineMakesNoMoreNormalThanAMeasuredOne) {
  memory.restore(kGpu, gib(50));
  reading.used = gib(50);
  EXPECT_EQ(memory.measured(kGpu, reading.size), Bytes(gib(80).count() / 100));
  read();
  EXPECT_TRUE(read_for(12s).in_use);
}

TEST_F(HiddenMemoryTest, AStoredBaselineIsTheOldestOfTenIdleMinutes) {
  memory.restore(kGpu, mib(100));
  reading.used = mib(600);
  EXPECT_EQ(read_for(8min, 1s).bytes, mib(500));
  EXPECT_EQ(memory.measured(kGpu, reading.size), mib(100));
  EXPECT_EQ(read_for(3min, 1s).bytes, Bytes());
  EXPECT_EQ(memory.measured(kGpu, reading.size), mib(600));
}

TEST(Baseline, IsTheLeastOfTenIdleMinutes) {
  Baseline baseline;
  TimePoint now{};
  EXPECT_EQ(baseline.value(gib(1)), gib(1));
  for (int second = 0; second < 3600; ++second) {
    now += 1s;
    baseline.add_idle(mib(second < 60 ? 100 : 300), now);
    if (second == 300) {
      EXPECT_EQ(baseline.value(gib(1)), mib(100));
      baseline.add_busy();
      now += 24h;  // a lease: time without an idle reading does not count
    }
    if (second == 301) {
      EXPECT_EQ(baseline.value(gib(1)), mib(100));
    }
  }
  EXPECT_EQ(baseline.value(gib(1)), mib(300));
  EXPECT_EQ(baseline.value(mib(200)), mib(200));
}

TEST_F(HiddenMemoryTest, IsNotComputedWithoutTheDriversFigure) {
  reading.used.reset();
  reading.processes = {process(10, kBob, gib(3))};
  EXPECT_EQ(read_for(1min), Hidden());
  EXPECT_FALSE(memory.measured(kGpu, gib(80)));
}

}  // namespace
}  // namespace gpurota::watch
