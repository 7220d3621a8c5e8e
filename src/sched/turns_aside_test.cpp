// Leases that are put aside, like a filler whose GPU is needed.
#include "sched/turns.h"

#include <gtest/gtest.h>

#include <set>

namespace gpurota::sched {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const GpuUuid kGpu{"GPU-0"};
constexpr TenantId kFiller{1}, kOther{2};
constexpr LeaseId kFillerLease{1}, kOtherLease{2};

// Tenants that carry out each action at once, except draining and moving where a test wants them
// late.
class AsideTest : public testing::Test {
 protected:
  AsideTest() { (void)turns.set_gpu({kGpu, gib(80), TurnsMode::kAuto, {}}); }

  void add(LeaseId lease, TenantId tenant, Bytes memory, Bytes limit = gib(78)) {
    LeaseTerms terms;
    terms.id = lease;
    terms.gpus = {{kGpu, limit}};
    ASSERT_TRUE(turns.check_lease(terms));
    turns.add_lease(terms);
    take(turns.handle(AddTenant{tenant, lease, {{kGpu, {}, {}, mib(600)}}, false}, now));
    take(turns.handle(Grow{tenant, kGpu, ++seq, memory, false}, now));
  }
  void aside(bool on) { take(turns.set_aside(kFillerLease, on, now)); }
  void pass(Duration d) {
    const TimePoint until = now + d;
    for (auto next = turns.next_deadline(); next && *next <= until; next = turns.next_deadline()) {
      now = *next;
      take(turns.handle(Tick{}, now));
    }
    now = until;
    take(turns.handle(Tick{}, now));
  }

  void take(const Actions& actions) {
    for (const Action& action : actions) {
      if (const auto* gate = std::get_if<SetGate>(&action)) on_gate(*gate);
      if (const auto* e = std::get_if<Evict>(&action)) on_evict(*e);
      if (const auto* r = std::get_if<Restore>(&action)) {
        take(turns.handle(Restored{r->tenant, r->gpu, r->bytes, {}, false}, now));
      }
      if (const auto* a = std::get_if<AnswerGrow>(&action)) answers.push_back(a->answer);
    }
  }
  void on_gate(const SetGate& gate) {
    seen[gate.tenant] = gate.seq;
    if (gate.order == GateOrder::kOpen) open.insert(gate.tenant);
    if (gate.order == GateOrder::kClose) open.erase(gate.tenant);
    say(gate.tenant);
  }
  void on_evict(const Evict& e) {
    ++evictions;
    if (moves_late) return;
    const bool fails = host_is_full;
    take(turns.handle(
        Evicted{e.tenant, e.gpu, fails ? Bytes() : e.bytes, fails ? e.bytes : Bytes(), fails},
        now));
  }
  void say(TenantId t) {
    const bool busy = stuck.contains(t) || (works.contains(t) && open.contains(t));
    const std::uint32_t waiting = works.contains(t) && !open.contains(t) ? 1 : 0;
    take(turns.handle(TenantStatus{t, seen[t], busy, waiting, 0}, now));
  }
  void work(TenantId t) { works.insert(t), say(t); }

  LeaseView view(LeaseId lease = kFillerLease) const { return *turns.explain(lease, now); }
  Bytes resident(LeaseId lease = kFillerLease) const { return view(lease).gpus[0].resident; }
  bool runs(TenantId t) const { return open.contains(t); }

  Turns turns;
  TimePoint now{seconds(100)};
  std::uint32_t seq = 0;
  int evictions = 0;
  bool host_is_full = false;
  bool moves_late = false;
  std::vector<GrowAnswer> answers;
  std::map<TenantId, std::uint32_t> seen;
  std::set<TenantId> open, works, stuck;
};

TEST_F(AsideTest, AllMemoryIsEvictedEvenIfTheLeaseIsAlone) {
  add(kFillerLease, kFiller, gib(70));
  work(kFiller);
  ASSERT_TRUE(runs(kFiller));
  aside(true);
  EXPECT_FALSE(runs(kFiller));
  EXPECT_EQ(resident(), Bytes());
  EXPECT_EQ(view().gpus[0].wired, mib(600)) << "its residue stays";
  EXPECT_EQ(view().wait, Wait::kAside);
  pass(seconds(3600));
  EXPECT_FALSE(runs(kFiller)) << "however long it waits, and whatever is free";
  EXPECT_EQ(evictions, 1);
}

TEST_F(AsideTest, ALeaseComesBackWholeWhenItIsTakenBack) {
  add(kFillerLease, kFiller, gib(70));
  work(kFiller);
  aside(true);
  aside(false);
  pass(seconds(2));
  EXPECT_EQ(resident(), gib(70));
  EXPECT_TRUE(runs(kFiller));
}

TEST_F(AsideTest, IdleLeaseComesBackToo) {
  add(kFillerLease, kFiller, gib(70));
  aside(true);
  aside(false);
  pass(seconds(2));
  EXPECT_EQ(resident(), gib(70));
}

TEST_F(AsideTest, NothingMovesBeforeTheWorkHasDrained) {
  add(kFillerLease, kFiller, gib(70));
  work(kFiller);
  stuck.insert(kFiller);
  aside(true);
  EXPECT_FALSE(runs(kFiller)) << "its gate is shut at once";
  pass(seconds(1));
  EXPECT_EQ(evictions, 0);
  EXPECT_EQ(view().phase, Phase::kLeaving) << "and it is not let run again because nobody waits";
  stuck.clear();
  works.clear();
  say(kFiller);
  EXPECT_EQ(resident(), Bytes());
}

TEST_F(AsideTest, NewLeaseHasTheGpuAloneWithoutTurns) {
  add(kFillerLease, kFiller, gib(70));
  work(kFiller);
  aside(true);
  add(kOtherLease, kOther, gib(70));
  work(kOther);
  EXPECT_EQ(answers.back(), GrowAnswer::kGranted);
  pass(seconds(600));
  EXPECT_TRUE(runs(kOther));
  EXPECT_FALSE(view(kOtherLease).takes_turns);
  EXPECT_FALSE(runs(kFiller));
}

TEST_F(AsideTest, CapacityMayShrinkBelowTheMemoryOfALeaseAside) {
  add(kFillerLease, kFiller, gib(70));
  EXPECT_FALSE(turns.set_gpu({kGpu, gib(20), TurnsMode::kAuto, {}}));
  aside(true);
  EXPECT_TRUE(turns.set_gpu({kGpu, gib(20), TurnsMode::kAuto, {}})) << "slices have the rest";
}

TEST_F(AsideTest, RequestsOfAMovedFillerAreGrantedAfterItsReturn) {
  add(kFillerLease, kFiller, gib(10));
  aside(true);
  take(turns.handle(Grow{kFiller, kGpu, ++seq, gib(5), false}, now));
  EXPECT_EQ(answers.size(), 1U) << "no answer yet";
  aside(false);
  pass(seconds(2));
  EXPECT_EQ(answers.size(), 2U);
  EXPECT_EQ(resident(), gib(15));
}

TEST_F(AsideTest, HostMemoryIsReservedForAllMemoryOfALeaseAside) {
  Settings settings;
  settings.host_budget = gib(60);
  turns.set(settings);
  add(kFillerLease, kFiller, gib(50));
  EXPECT_TRUE(turns.could_be_aside(kFillerLease));
  take(turns.handle(Grow{kFiller, kGpu, ++seq, gib(20), false}, now));
  EXPECT_FALSE(turns.could_be_aside(kFillerLease));
  take(turns.handle(Shrink{kFiller, kGpu, gib(20), {}, {}}, now));
  aside(true);
  add(kOtherLease, kOther, gib(40));
  constexpr TenantId kThird{3};
  add(LeaseId{3}, kThird, gib(60));
  EXPECT_EQ(answers.back(), GrowAnswer::kRefusedHost) << "the filler has 50 of the 60 GiB there";
}

// A pending eviction cannot be called back, although nobody needs the room any more.
TEST_F(AsideTest, HostMemoryMustHoldPendingEvictionsToo) {
  Settings settings;
  settings.host_budget = gib(120);
  turns.set(settings);
  add(kFillerLease, kFiller, gib(70));
  add(kOtherLease, kOther, gib(60));
  pass(seconds(10));
  moves_late = true;
  work(kFiller);
  ASSERT_EQ(turns.residency().of_lease(kOtherLease, GpuSlot{0}).leaving, gib(51) + mib(192))
      << "in pieces of 64 MiB";
  EXPECT_FALSE(turns.could_be_aside(kFillerLease));
}

TEST_F(AsideTest, ALeaseComesBackOnceItFitsBesideNewerOnes) {
  Settings settings;
  settings.host_budget = gib(100);
  turns.set(settings);
  add(kFillerLease, kFiller, gib(70));
  aside(true);
  add(kOtherLease, kOther, gib(60));
  ASSERT_EQ(answers.back(), GrowAnswer::kGranted);
  EXPECT_FALSE(turns.could_come_back(kFillerLease)) << "some 52 GiB of each could be out";
  take(turns.handle(Shrink{kOther, kGpu, gib(50), {}, {}}, now));
  EXPECT_TRUE(turns.could_come_back(kFillerLease));
  ASSERT_TRUE(turns.set_gpu({kGpu, gib(40), TurnsMode::kAuto, {}}));
  EXPECT_FALSE(turns.could_come_back(kFillerLease)) << "its GPU has become too small for it";
}

TEST_F(AsideTest, AParkedLeaseHasNothingOnItsGpuUntilItComesBack) {
  add(kFillerLease, kFiller, gib(70));
  aside(true);
  EXPECT_EQ(turns.residency().used(GpuSlot{0}), mib(600));
  take(turns.set_parked(kFillerLease, true, now));
  EXPECT_EQ(turns.residency().used(GpuSlot{0}), Bytes());
  EXPECT_EQ(turns.residency().wired(GpuSlot{0}), Bytes());
  add(kOtherLease, kOther, gib(79), gib(80));
  ASSERT_EQ(answers.back(), GrowAnswer::kGranted);
  EXPECT_FALSE(turns.could_come_back(kFillerLease)) << "there is no room for its 600 MiB";
  take(turns.handle(Shrink{kOther, kGpu, gib(1), {}, {}}, now));
  ASSERT_TRUE(turns.could_come_back(kFillerLease));
  take(turns.set_parked(kFillerLease, false, now));
  EXPECT_EQ(turns.residency().used(GpuSlot{0}), gib(78) + mib(1200));
  aside(false);
  work(kFiller);
  pass(seconds(100));
  EXPECT_EQ(resident(), gib(70));
}

TEST_F(AsideTest, AMoveThatFailsIsTriedAgainAndLosesNothing) {
  add(kFillerLease, kFiller, gib(70));
  host_is_full = true;
  aside(true);
  EXPECT_EQ(resident(), gib(70));
  host_is_full = false;
  pass(seconds(2));
  EXPECT_EQ(resident(), Bytes());
}

TEST_F(AsideTest, RestartedDaemonKeepsTheLeaseAsideAndClosesItsGate) {
  LeaseTerms terms;
  terms.id = kFillerLease;
  terms.gpus = {{kGpu, gib(78)}};
  turns.add_lease(terms);
  turns.hold_until(now + seconds(3));
  EXPECT_TRUE(turns.on_hold(now));
  aside(true);
  open.insert(kFiller);
  take(turns.handle(AddTenant{kFiller, kFillerLease, {{kGpu, gib(70), gib(70), mib(600)}}, true},
                    now));
  pass(seconds(4));
  EXPECT_FALSE(runs(kFiller));
  EXPECT_EQ(resident(), Bytes());
}

}  // namespace
}  // namespace gpurota::sched
