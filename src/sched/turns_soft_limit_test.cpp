// Leases above their soft limit, and leases with a quantum of their own.
#include "sched/turns_fixture_test.h"

namespace gpurota::sched {
namespace {

class SoftLimitTest : public TurnsTest {
 protected:
  SoftLimitTest() = default;

  void set_terms(LeaseId lease, std::optional<Bytes> soft_limit, int priority = 0,
                 std::optional<Duration> quantum = {}) {
    LeaseTerms terms;
    terms.id = lease;
    terms.priority = priority;
    terms.quantum = quantum;
    terms.gpus = {{kGpu0, gib(78), soft_limit}};
    turns.update_lease(terms);
    send(Tick{});
  }
  Duration quantum_of(LeaseId lease) const { return turns.explain(lease, now)->quantum; }
  // Each has 30 GiB of 80, and C has the turn: 10 GiB of A or B are evicted.
  void three_of_which_c_runs() {
    add(kLeaseA, {kA}, gib(30));
    add(kLeaseB, {kB}, gib(30));
    add(kLeaseC, {kC}, gib(30));
    work(kC);
    pass(seconds(1));
    ASSERT_TRUE(holds(kLeaseC));
    evicted.clear();
  }
  void c_grows() { send(Grow{kC, kGpu0, ++seq, gib(10), false}); }
  // The share of the time from now on in which A has its turn.
  double share_of_a(int rounds) {
    int held = 0;
    for (int i = 0; i < rounds; ++i) {
      pass(milliseconds(100));
      held += holds(kLeaseA) ? 1 : 0;
    }
    return held / static_cast<double>(rounds);
  }
};

TEST_F(SoftLimitTest, ALeaseAboveItsLimitGivesItsTurnUpAtOnce) {
  add_two_that_do_not_fit();
  let_b_begin();
  ASSERT_EQ(turns.explain(kLeaseA, now)->wait, Wait::kTurn);
  set_terms(kLeaseB, gib(60));
  EXPECT_TRUE(holds(kLeaseA)) << "70 GiB are above 60";
  EXPECT_TRUE(turns.explain(kLeaseB, now)->above_soft);
  EXPECT_FALSE(turns.explain(kLeaseA, now)->above_soft);
}

TEST_F(SoftLimitTest, PredictedStartBehindAHigherPriorityIsAfterItsBudget) {
  ASSERT_TRUE(turns.set_gpu({kGpu0, gib(80), TurnsMode::kAuto, seconds(1)}));
  add_two_that_do_not_fit();
  let_b_begin();
  const TimePoint equal = *turns.explain(kLeaseA, now)->earliest;
  EXPECT_LE(equal, now + turns.explain(kLeaseB, now)->quantum);
  set_terms(kLeaseB, {}, 10);
  const TimePoint behind = *turns.explain(kLeaseA, now)->earliest;
  EXPECT_GT(behind, equal) << "it may take turn after turn until then";
  while (!holds(kLeaseA) && now < behind + seconds(5)) pass(milliseconds(50));
  EXPECT_TRUE(holds(kLeaseA));
  EXPECT_GT(now, equal);
}

TEST_F(SoftLimitTest, LeaseWithinItsLimitIsUnaffected) {
  add_two_that_do_not_fit();
  let_b_begin();
  set_terms(kLeaseB, gib(70));
  EXPECT_TRUE(holds(kLeaseB));
  EXPECT_FALSE(turns.explain(kLeaseB, now)->above_soft) << "70 GiB are not above 70";
}

TEST_F(SoftLimitTest, ALeaseAboveItsLimitIsNotStarved) {
  add_two_that_do_not_fit();
  set_terms(kLeaseA, gib(60));
  work(kA);
  work(kB);
  pass(seconds(100));
  const double share = share_of_a(6000);
  EXPECT_GT(share, 0.2) << "no more than their share of the time is taken from it";
  EXPECT_LT(share, 0.6);
}

TEST_F(SoftLimitTest, LoneLeaseAboveItsLimitLosesNothing) {
  add(kLeaseA, {kA}, gib(70));
  set_terms(kLeaseA, gib(10));
  work(kA);
  pass(seconds(600));
  EXPECT_TRUE(open.contains(kA));
  EXPECT_EQ(of<Evict>().size(), 0u);
}

TEST_F(SoftLimitTest, LeaseBelowItsLimitAgainIsTreatedEqually) {
  add_two_that_do_not_fit();
  let_b_begin();
  set_terms(kLeaseB, gib(60));
  ASSERT_TRUE(holds(kLeaseA));
  send(Shrink{kB, kGpu0, gib(20), {}, {}});
  EXPECT_FALSE(turns.explain(kLeaseB, now)->above_soft);
}

TEST_F(SoftLimitTest, MemoryIsTakenFirstFromTheLowestPriorityAboveItsLimit) {
  three_of_which_c_runs();
  set_terms(kLeaseA, gib(20), 1);
  set_terms(kLeaseB, gib(20), 0);
  c_grows();
  EXPECT_EQ(evicted[kA], Bytes());
  EXPECT_EQ(evicted[kB], gib(10)) << "of the two that are above, it has the lower priority";
}

TEST_F(SoftLimitTest, MemoryIsTakenFromALeaseAboveItsLimitRatherThanFromAnIdleOne) {
  three_of_which_c_runs();
  set_terms(kLeaseB, gib(20));
  work(kB);
  c_grows();
  ASSERT_TRUE(holds(kLeaseC));
  EXPECT_EQ(evicted[kA], Bytes()) << "it is idle, and within its limit";
  EXPECT_EQ(evicted[kB], gib(10));
}

TEST_F(SoftLimitTest, TheNearestQuantumCounts) {
  (void)turns.set_gpu({kGpu0, gib(80), TurnsMode::kAuto, seconds(7)});
  add_two_that_do_not_fit();
  EXPECT_EQ(quantum_of(kLeaseA), seconds(7));
  set_terms(kLeaseA, {}, 0, seconds(2));
  EXPECT_EQ(quantum_of(kLeaseA), seconds(2));
  EXPECT_EQ(quantum_of(kLeaseB), seconds(7));
  set_terms(kLeaseA, {}, 0, Duration::zero());
  EXPECT_NE(quantum_of(kLeaseA), seconds(7)) << "from the cost, whatever the GPU says";
  EXPECT_GE(quantum_of(kLeaseA), Settings{}.least_quantum);
}

TEST_F(SoftLimitTest, QuantumThatWouldApplyIsShownWhileAllFits) {
  add(kLeaseA, {kA}, gib(10));
  (void)turns.set_gpu({kGpu0, gib(80), TurnsMode::kAuto, seconds(7)});
  (void)turns.set_gpu({kGpu1, gib(80), TurnsMode::kAuto, seconds(3)});
  ASSERT_FALSE(turns.explain(kLeaseA, now)->takes_turns);
  EXPECT_EQ(quantum_of(kLeaseA), seconds(7)) << "it has nothing on the other GPU";
}

TEST_F(SoftLimitTest, APriorityThatChangesCountsFromThenOn) {
  add_two_that_do_not_fit();
  let_b_begin();
  set_terms(kLeaseA, {}, 10);
  EXPECT_TRUE(holds(kLeaseA));
}

TEST_F(SoftLimitTest, MovesAreCounted) {
  add_two_that_do_not_fit();
  const MoveCounts before = turns.view().at(0).counts;
  work(kA);
  pass(seconds(100));
  ASSERT_TRUE(holds(kLeaseA));
  const MoveCounts after = turns.view().at(0).counts;
  EXPECT_EQ(after.evictions, before.evictions + 1);
  EXPECT_EQ(after.handovers, before.handovers + 1);
  EXPECT_EQ(after.evicted - before.evicted, evicted[kB]);
  EXPECT_EQ(after.restored - before.restored, gib(60)) << "the deficit";
  EXPECT_EQ(turns.view().at(1).counts.evictions, 0u) << "each GPU its own";
}

}  // namespace
}  // namespace gpurota::sched
