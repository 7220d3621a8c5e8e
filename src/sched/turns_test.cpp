#include "sched/turns_fixture_test.h"

namespace gpurota::sched {
namespace {

TEST_F(TurnsTest, WhileAllFitsEverybodyRuns) {
  add(kLeaseA, {kA}, gib(30));
  add(kLeaseB, {kB}, gib(40));
  work(kA);
  work(kB);
  pass(seconds(600));
  EXPECT_TRUE(open.contains(kA) && open.contains(kB));
  EXPECT_EQ(of<Evict>().size(), 0u);
  EXPECT_FALSE(turns.explain(kLeaseA, now)->takes_turns);
}

TEST_F(TurnsTest, TurnsBeginWhenItNoLongerFitsAndEndWhenItDoesAgain) {
  add(kLeaseA, {kA}, gib(50));
  add(kLeaseB, {kB}, gib(20));
  work(kA);
  send(Grow{kB, kGpu0, ++seq, gib(40), false});
  EXPECT_TRUE(turns.explain(kLeaseA, now)->takes_turns);
  EXPECT_EQ(open.size(), 1u);
  pass(seconds(300));
  EXPECT_EQ(answer(), GrowAnswer::kGranted);
  const auto view = *turns.explain(kLeaseB, now);
  send(Shrink{kB, kGpu0, view.gpus[0].resident, view.gpus[0].out, {}});
  EXPECT_TRUE(turns.explain(kLeaseA, now)->takes_turns) << "not at once";
  pass(seconds(2));
  EXPECT_FALSE(turns.explain(kLeaseA, now)->takes_turns);
  EXPECT_TRUE(open.contains(kA) && open.contains(kB));
}

TEST_F(TurnsTest, OnlyTheDeficitMoves) {
  add(kLeaseA, {kA}, gib(45));
  add(kLeaseB, {kB}, gib(45));
  work(kA);
  work(kB);
  pass(seconds(600));
  for (const Evict& e : of<Evict>()) EXPECT_LE(e.bytes, gib(10) + mib(64));
  const Moved last = turns.view()[0].switches.at(4).moved;
  EXPECT_EQ(last.in, gib(10));
  EXPECT_EQ(last.clean, Bytes(last.out.count() / 2));
}

TEST_F(TurnsTest, LeaseWithTheFurthestTurnIsEvictedFirst) {
  add(kLeaseA, {kA}, gib(30));
  add(kLeaseB, {kB}, gib(30));
  work(kA);
  work(kB);
  pass(seconds(60));
  rest(kA);  // wants no turn any more
  evicted.clear();
  add(kLeaseC, {kC}, gib(30));
  work(kC);
  pass(seconds(60));
  EXPECT_GT(evicted[kA], Bytes());
  EXPECT_EQ(evicted[kB], Bytes());
  EXPECT_EQ(evicted[kC], Bytes());
}

TEST_F(TurnsTest, ALoneWorkerIsNeverInterrupted) {
  add_two_that_do_not_fit();
  work(kA);
  pass(seconds(5));
  ASSERT_TRUE(holds(kLeaseA));
  done.clear();
  pass(seconds(3600));
  EXPECT_TRUE(done.empty());
}

TEST_F(TurnsTest, AnIdleHolderStaysResidentUntilItsMemoryIsNeeded) {
  add_two_that_do_not_fit();
  work(kA);
  pass(seconds(5));
  rest(kA);
  done.clear();
  pass(seconds(3600));
  EXPECT_TRUE(of<Evict>().empty());
  work(kB);
  EXPECT_TRUE(holds(kLeaseB)) << "at once: it has been idle for long";
}

// The tenant captures or makes a graph, which is no submission.
TEST_F(TurnsTest, ATenantAtWorkBehindAShutGateDisturbsNobody) {
  add_two_that_do_not_fit();
  work(kB);
  pass(milliseconds(100));
  ASSERT_TRUE(holds(kLeaseB));
  done.clear();
  stuck.insert(kA);
  say(kA);
  EXPECT_EQ(turns.explain(kLeaseA, now)->phase, Phase::kApart);
  EXPECT_TRUE(of<SetGate>().empty());
}

TEST_F(TurnsTest, PauseDuringWhichTheTurnEndsIsOnePause) {
  restoring_takes = seconds(1);
  add_two_that_do_not_fit();
  work(kA);
  pass(seconds(60));
  work(kB);
  rest(kA);
  pass(seconds(40));  // outlasts moving, so B has the turn by now
  ASSERT_TRUE(holds(kLeaseB));
  work(kA);
  rest(kB);
  pass(seconds(10));  // A's quantum is not over
  ASSERT_TRUE(holds(kLeaseA));
  work(kB);
  pass(milliseconds(200));
  ASSERT_TRUE(holds(kLeaseA));
  rest(kA);
  pass(milliseconds(200));
  EXPECT_FALSE(holds(kLeaseA)) << "its pauses are long, and it need not wait to know that";
}

// Three leases move the same amount of memory, but the host memory of one lease is not pinned, so
// that its memory moves more slowly. Only the turns of that lease are longer.
TEST_F(TurnsTest, ALeaseWhoseMemoryMovesSlowlyHasLongerTurns) {
  restoring_takes = milliseconds(500);
  slow[kC] = milliseconds(1500);
  for (const auto& [lease, tenant] : {std::pair{kLeaseA, kA}, {kLeaseB, kB}, {kLeaseC, kC}}) {
    add(lease, {tenant}, gib(50));
    work(tenant);
  }
  pass(seconds(1000));
  std::map<LeaseId, double> took;  // seconds of the last switch to it
  const std::vector<GpuView> gpus = turns.view();
  for (const SwitchRecord& each : gpus.front().switches) {
    took[each.to] = std::chrono::duration<double>(each.moved.took).count();
  }
  EXPECT_GT(took[kLeaseC], 3 * took[kLeaseA]);
  for (LeaseId lease : {kLeaseA, kLeaseB, kLeaseC}) {
    const double quantum =
        std::chrono::duration<double>(turns.explain(lease, now)->quantum).count();
    EXPECT_NEAR(took[lease] / (took[lease] + quantum), Settings{}.moving_share, 0.01);
  }
}

TEST_F(TurnsTest, APauseThatIsShorterThanMovingCostsKeepsTheTurn) {
  restoring_takes = seconds(2);
  add_two_that_do_not_fit();
  work(kA);
  pass(seconds(2));
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(holds(kLeaseA));
    if (i == 15) work(kB);
    rest(kA);
    pass(milliseconds(20));
    work(kA);
    pass(milliseconds(20));
  }
  rest(kA);
  pass(seconds(6));
  EXPECT_TRUE(holds(kLeaseB)) << "a pause that has outlasted moving there and back";
}

TEST_F(TurnsTest, RequestTooLargeForALeaseAloneIsRefused) {
  add(kLeaseA, {kA}, gib(70));
  add(kLeaseB, {kB}, gib(9));
  send(Grow{kA, kGpu0, ++seq, gib(9), false});
  EXPECT_EQ(answer(), GrowAnswer::kRefusedLimit);
  send(Grow{kB, kGpu0, ++seq, gib(11), true});
  EXPECT_EQ(answer(), GrowAnswer::kRefusedCapacity) << "wired: the first could never be resident";
}

class TurnsWithLittleHostMemory : public TurnsTest {
 protected:
  static Settings settings() {
    Settings s;
    s.host_budget = gib(30);
    return s;
  }
  TurnsWithLittleHostMemory() : TurnsTest(settings()) {}
};

TEST_F(TurnsWithLittleHostMemory, MemoryEvictedTogetherMustFitHostMemory) {
  add(kLeaseA, {kA}, gib(45));
  add(kLeaseB, {kB}, gib(45));
  EXPECT_EQ(answer(), GrowAnswer::kGranted);
  send(Grow{kB, kGpu0, ++seq, gib(20), false});
  EXPECT_EQ(answer(), GrowAnswer::kRefusedHost);
}

TEST_F(TurnsTest, TurnsOffRefusesLeasesThatNeedTurnsAndIsRefusedWhileTheyRun) {
  ASSERT_TRUE(turns.set_gpu({kGpu0, gib(80), TurnsMode::kOff, {}}));
  add(kLeaseA, {kA}, gib(45));
  add(kLeaseB, {kB}, gib(45));
  EXPECT_EQ(answer(), GrowAnswer::kRefusedTurnsOff);
  ASSERT_TRUE(turns.set_gpu({kGpu0, gib(80), TurnsMode::kAuto, {}}));
  send(Grow{kB, kGpu0, ++seq, gib(45), false});
  const auto refused = turns.set_gpu({kGpu0, gib(80), TurnsMode::kOff, {}});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("10 GiB"), std::string::npos);
}

TEST_F(TurnsTest, TurnsOnTakesTurnsAlsoWhenAllFits) {
  ASSERT_TRUE(turns.set_gpu({kGpu0, gib(80), TurnsMode::kOn, seconds(1)}));
  add(kLeaseA, {kA}, gib(10));
  add(kLeaseB, {kB}, gib(10));
  work(kA);
  work(kB);
  for (int i = 0; i < 10; ++i) {
    pass(seconds(1));
    EXPECT_EQ(open.size(), 1u);
  }
  EXPECT_GT(turns.view()[0].switches.size(), 4u);
  EXPECT_TRUE(of<Evict>().empty());
}

TEST_F(TurnsTest, ASmallerCapacityIsRefusedWhereALeaseWouldNotFit) {
  add(kLeaseA, {kA}, gib(60));
  EXPECT_FALSE(turns.set_gpu({kGpu0, gib(50), TurnsMode::kAuto, {}}));
  EXPECT_TRUE(turns.set_gpu({kGpu0, gib(61), TurnsMode::kAuto, {}}));
}

TEST_F(TurnsTest, AHigherPriorityGetsTheNextTurnAtOnce) {
  add_two_that_do_not_fit(1);
  work(kA);
  pass(seconds(3));
  ASSERT_TRUE(holds(kLeaseA));
  work(kB);
  EXPECT_TRUE(holds(kLeaseB));
}

TEST_F(TurnsTest, StoppedTenantThatBlocksOthersForLongLosesItsLease) {
  add(kLeaseA, {kA}, gib(50));
  add(kLeaseB, {kB}, gib(50));
  work(kA);
  pass(seconds(100));
  silent.insert(kA);
  send(Reachable{kA, false});
  pass(std::chrono::hours(5));
  EXPECT_TRUE(of<ReportTrouble>().empty()) << "nobody needs it";
  work(kB);
  pass(std::chrono::minutes(9));
  EXPECT_TRUE(of<ReportTrouble>().empty());
  pass(std::chrono::minutes(2));
  ASSERT_EQ(of<ReportTrouble>().size(), 1u);
  EXPECT_EQ(of<ReportTrouble>()[0], (ReportTrouble{Trouble::kUnreachable, kLeaseA, kA, true, {}}));
  take(turns.remove_lease(kLeaseA, now));
  pass(seconds(10));
  EXPECT_TRUE(holds(kLeaseB));
}

TEST_F(TurnsTest, StoppedTenantIsSkippedAndItsMemoryNotExpected) {
  add(kLeaseA, {kA}, gib(50));
  add(kLeaseB, {kB}, gib(50));
  add(kLeaseC, {kC}, gib(20));
  work(kA);
  pass(seconds(100));
  evicted.clear();
  ASSERT_TRUE(holds(kLeaseA));
  silent.insert(kA);
  send(Reachable{kA, false});
  work(kB);
  work(kC);
  pass(seconds(100));
  EXPECT_TRUE(holds(kLeaseC)) << "fits beside the 50 GiB that cannot be moved";
  const auto why = *turns.explain(kLeaseB, now);
  EXPECT_EQ(why.wait, Wait::kHeldByStopped);
  EXPECT_EQ(why.process, kA);
  EXPECT_EQ(why.behind, kLeaseA);
  EXPECT_EQ(why.earliest, now + std::chrono::minutes(10) - seconds(100)) << "its lease ends then";
  EXPECT_EQ(evicted[kA], Bytes());
  silent.erase(kA);
  send(Reachable{kA, true});
  say(kA);
  pass(seconds(100));
  EXPECT_GT(evicted[kA], Bytes());
}

TEST_F(TurnsTest, AHolderThatDoesNotYieldIsReportedAtItsDeadlineFromTheFirstClose) {
  add_two_that_do_not_fit();
  work(kA);
  stuck.insert(kA);
  pass(seconds(3));
  work(kB);
  ASSERT_TRUE(of<ReportTrouble>().empty());
  std::optional<TimePoint> closed;
  while (of<ReportTrouble>().empty() && now < TimePoint{seconds(1000)}) {
    pass(milliseconds(100));
    if (!closed && turns.explain(kLeaseA, now)->phase == Phase::kLeaving) closed = now;
  }
  ASSERT_TRUE(closed);
  EXPECT_NEAR(std::chrono::duration<double>(now - *closed).count(), 30, 0.3)
      << "letting submissions through does not begin it anew";
  EXPECT_EQ(of<ReportTrouble>()[0].lease, kLeaseA);
  EXPECT_EQ(turns.explain(kLeaseB, now)->wait, Wait::kDraining);
}

TEST_F(TurnsTest, AHolderIsLeftAloneWhenNobodyWaitsAnyMore) {
  add_two_that_do_not_fit();
  work(kA);
  stuck.insert(kA);
  pass(seconds(3));
  work(kB);
  pass(seconds(200));
  send(TenantDied{kB});
  send(RemoveTenant{kB});
  done.clear();
  pass(seconds(100));
  EXPECT_TRUE(open.contains(kA));
  EXPECT_TRUE(of<ReportTrouble>().empty());
}

class Collective : public TurnsTest {
 protected:
  // Rank kA has a kernel in flight that waits for launches of rank kA2, which stand at the gate.
  void close_with_a_stuck_rank() {
    ASSERT_TRUE(turns.set_gpu({kGpu0, gib(80), TurnsMode::kAuto, seconds(1)}));
    add(kLeaseA, {kA, kA2}, gib(35));
    add(kLeaseB, {kB}, gib(70));
    work(kA);
    work(kA2);
    work(kB);
    stuck.insert(kA);
    for (int i = 0; i < 1000 && turns.explain(kLeaseA, now)->phase != Phase::kLeaving; ++i) {
      pass(milliseconds(10));
    }
  }
  long lets(TenantId tenant) const {
    const std::vector<SetGate> gates = of<SetGate>();
    return std::count_if(gates.begin(), gates.end(), [&](const SetGate& g) {
      return g.tenant == tenant && g.order == GateOrder::kLetOneThrough;
    });
  }
};

TEST_F(Collective, DrainedRankSubmitsOneByOneUntilTheOtherDrains) {
  close_with_a_stuck_rank();
  silent.insert(kA2);  // answers one by one, below
  pass(milliseconds(50));
  ASSERT_EQ(lets(kA2), 1);
  for (long n = 2; n <= 100; ++n) {
    say(kA2);
    EXPECT_EQ(lets(kA2), n) << "one at a time, without waiting: it catches up";
  }
  EXPECT_EQ(lets(kA), 0);
  stuck.erase(kA);
  say(kA);
  say(kA2);
  pass(milliseconds(1));
  EXPECT_TRUE(holds(kLeaseB));
}

TEST_F(Collective, LongKernelsDoNotGetNewWorkForEver) {
  ASSERT_TRUE(turns.set_gpu({kGpu0, gib(80), TurnsMode::kAuto, seconds(1)}));
  add(kLeaseA, {kA}, gib(70));
  add(kLeaseB, {kB}, gib(70));
  work(kA);
  work(kB);
  for (int i = 0; i < 1000 && !holds(kLeaseA); ++i) pass(milliseconds(10));
  stuck.insert(kA);
  pass(seconds(20));
  EXPECT_GE(lets(kA), 1);
  EXPECT_LE(lets(kA), 6) << "each time it has to stand still for longer";
}

TEST_F(Collective, AThreadThatWaitsForMemoryWhileItsLeaseLeavesGetsIt) {
  close_with_a_stuck_rank();
  done.clear();
  send(Grow{kA2, kGpu0, ++seq, gib(5), false});  // the launch that kA waits for comes after this
  pass(milliseconds(1));
  ASSERT_FALSE(of<AnswerGrow>().empty());
  EXPECT_EQ(answer(), GrowAnswer::kGranted);
  EXPECT_LE(turns.residency().used(GpuSlot{0}), gib(80));
  stuck.erase(kA);
  say(kA);
  pass(milliseconds(500));
  EXPECT_TRUE(holds(kLeaseB));
}

TEST_F(TurnsTest, TurnCoversAllTenantsOnAllGpus) {
  ASSERT_TRUE(turns.set_gpu({kGpu0, gib(80), TurnsMode::kAuto, seconds(1)}));
  ASSERT_TRUE(turns.set_gpu({kGpu1, gib(80), TurnsMode::kAuto, seconds(1)}));
  add(kLeaseA, {kA, kA2}, gib(30), {kGpu0, kGpu1});
  add(kLeaseB, {kB}, gib(70), {kGpu0});
  add(kLeaseC, {kC}, gib(70), {kGpu1});
  for (TenantId t : {kA, kA2, kB, kC}) work(t);
  int together = 0, others = 0;
  for (int i = 0; i < 400; ++i) {
    pass(milliseconds(50));
    EXPECT_EQ(open.contains(kA), open.contains(kA2));
    if (open.contains(kA)) {
      EXPECT_FALSE(open.contains(kB) || open.contains(kC));
      ++together;
    }
    if (open.contains(kB) && open.contains(kC)) ++others;
  }
  EXPECT_GT(together, 120);
  EXPECT_GT(others, 120);
}

// The memory that a tenant lacks differs from what the scheduler knows, until the tenant reports
// again.
TEST_F(TurnsTest, RoomThatATenantGivesBackUnusedIsNotOfferedAgainAtOnce) {
  add_two_that_do_not_fit();
  unused.insert(kA);
  work(kA);
  done.clear();
  pass(seconds(10));
  EXPECT_FALSE(holds(kLeaseA));
  EXPECT_GE(of<Restore>().size(), 2u);
  EXPECT_LE(of<Restore>().size(), 12u);
  EXPECT_EQ(turns.residency().of_lease(kLeaseA, GpuSlot{0}).coming, Bytes());
  work(kB);
  pass(milliseconds(500));
  EXPECT_TRUE(holds(kLeaseB)) << "nobody waits for that";
  rest(kB);
  unused.clear();
  pass(seconds(2));
  EXPECT_TRUE(holds(kLeaseA));
}

TEST_F(TurnsTest, MemoryOfADeadTenantCountsUntilItIsFree) {
  add(kLeaseA, {kA}, gib(70));
  work(kA);
  send(TenantDied{kA});
  add(kLeaseB, {kB}, gib(70));
  EXPECT_TRUE(of<AnswerGrow>().size() == 1) << "neither granted nor refused";
  send(RemoveTenant{kA});
  EXPECT_EQ(answer(), GrowAnswer::kGranted);
  EXPECT_EQ(of<AnswerGrow>().size(), 2u);
}

TEST_F(TurnsTest, NewDaemonLetsTheHolderContinue) {
  const std::vector<TenantMemory> here{{kGpu0, gib(70), gib(70), mib(600)}};
  const std::vector<TenantMemory> out{{kGpu0, gib(70), gib(8), mib(600)}};
  begin_anew();
  send(AddTenant{kB, kLeaseB, out, false});
  work(kB);
  send(AddTenant{kA, kLeaseA, here, true});
  open.insert(kA);
  work(kA);
  EXPECT_TRUE(done.empty());
  EXPECT_EQ(turns.explain(kLeaseB, now)->wait, Wait::kRestart);
  pass(seconds(3));
  EXPECT_TRUE(holds(kLeaseA));
  EXPECT_TRUE(of<SetGate>().empty()) << "its gate was not touched";
  pass(seconds(600));
  EXPECT_GT(evicted[kA], Bytes());
}

// A process that has not connected again counts as an outsider, which cannot move. There is room
// once the process is a tenant again.
TEST_F(TurnsTest, NewDaemonAnswersNoGrowthBeforeTenantsReconnect) {
  begin_anew();
  turns.set_outsiders(kGpu0, gib(70));
  send(AddTenant{kB, kLeaseB, {}, false});
  send(Grow{kB, kGpu0, ++seq, gib(40), false});
  EXPECT_TRUE(of<AnswerGrow>().empty());
  turns.set_outsiders(kGpu0, Bytes());
  send(AddTenant{kA, kLeaseA, {{kGpu0, gib(70), gib(70), {}}}, false});
  pass(seconds(3));
  EXPECT_EQ(answer(), GrowAnswer::kGranted);
}

// The last daemon had closed the gates, and ended before the tenants drained.
TEST_F(TurnsTest, ANewDaemonLetsARankDrainThatWaitsForAnothersLaunch) {
  begin_anew();
  const TenantMemory here{kGpu0, gib(35), gib(35), mib(600)};
  send(AddTenant{kA, kLeaseA, {here}, false});
  send(AddTenant{kA2, kLeaseA, {here}, false});
  send(AddTenant{kB, kLeaseB, {{kGpu0, gib(70), {}, mib(600)}}, false});
  stuck.insert(kA);
  for (TenantId t : {kA2, kB}) works.insert(t);
  for (TenantId t : {kA, kA2, kB}) say(t);
  silent.insert(kA2);  // answers below
  pass(seconds(3) + milliseconds(20));
  std::vector<SetGate> gates = of<SetGate>();
  std::erase_if(gates, [](const SetGate& g) { return g.order != GateOrder::kLetOneThrough; });
  ASSERT_FALSE(gates.empty()) << "kA's kernel may wait for what kA2 wants to submit";
  EXPECT_EQ(gates.front().tenant, kA2);
  EXPECT_EQ(evicted[kA], Bytes());
  stuck.erase(kA);
  say(kA);
  silent.clear();
  say(kA2);
  pass(seconds(1));
  EXPECT_TRUE(holds(kLeaseA) || holds(kLeaseB));
}

TEST_F(TurnsTest, ClaimOfATenantIsBoundedByKnownMemory) {
  add(kLeaseA, {kA}, gib(30));
  send(Restored{kA, kGpu0, gib(1000), {}, false});
  send(Evicted{kA, kGpu0, gib(1000), gib(1000), false});
  send(Shrink{kA, kGpu0, gib(1000), gib(1000), gib(1000)});
  send(Shrink{kA, GpuUuid{"GPU-nowhere"}, gib(1), {}, {}});
  send(TenantStatus{TenantId{99}, 1, true, 1, 1});
  send(Grow{TenantId{99}, kGpu0, 1, gib(1), false});
  EXPECT_EQ(answer(), GrowAnswer::kRefusedLimit);
  send(Grow{kA, kGpu0, ++seq, Bytes(UINT64_MAX), false});
  EXPECT_EQ(answer(), GrowAnswer::kRefusedLimit);
  EXPECT_EQ(turns.residency().used(GpuSlot{0}), Bytes());
}

}  // namespace
}  // namespace gpurota::sched
