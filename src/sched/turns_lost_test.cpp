// A daemon that starts while a GPU is lost: work on the other GPUs continues, and memory on the
// lost one stays counted.
#include "sched/host_needs.h"
#include "sched/turns_fixture_test.h"

namespace gpurota::sched {
namespace {

constexpr TenantId kD{5};

// The last daemon knew two GPUs; this one finds only the first. Lease A has the second GPU, leases
// B and C have the first, and lease D has both.
class LostGpu : public testing::Test {
 protected:
  LostGpu() {
    (void)turns.set_gpu({kGpu0, gib(80), TurnsMode::kAuto, {}});
    restore(kLeaseA, {kGpu1});
    restore(kLeaseB, {kGpu0});
    restore(kLeaseC, {kGpu0});
    restore(kLeaseD, {kGpu0, kGpu1});
  }

  void restore(LeaseId id, const std::vector<GpuUuid>& gpus) {
    LeaseTerms terms;
    terms.id = id;
    for (const GpuUuid& gpu : gpus) terms.gpus.push_back({gpu, gib(78)});
    turns.add_lease(terms);
  }
  void come_back(TenantId tenant, LeaseId lease, const GpuUuid& gpu, Bytes movable, Bytes resident,
                 bool open) {
    take(turns.handle(AddTenant{tenant, lease, {{gpu, movable, resident, {}}}, open}, now));
  }
  // Tenants obey gate orders at once. C waits at its gate while the gate is shut.
  void take(const Actions& actions) {
    for (const Action& action : actions) {
      done.push_back(action);
      const auto* gate = std::get_if<SetGate>(&action);
      if (!gate) continue;
      const std::uint32_t waiting = gate->tenant == kC && gate->order != GateOrder::kOpen ? 1u : 0u;
      take(turns.handle(TenantStatus{gate->tenant, gate->seq, false, waiting, waiting}, now));
    }
  }
  bool was_told_to_move(TenantId tenant) const {
    return std::any_of(done.begin(), done.end(), [&](const Action& action) {
      const auto* evict = std::get_if<Evict>(&action);
      const auto* restore = std::get_if<Restore>(&action);
      return (evict && evict->tenant == tenant) || (restore && restore->tenant == tenant);
    });
  }
  Holding of(LeaseId lease, const GpuUuid& gpu) const {
    const auto slot = turns.residency().slot_of(gpu);
    return slot ? turns.residency().of_lease(lease, *slot) : Holding{};
  }

  static constexpr LeaseId kLeaseD{4};
  Turns turns;
  TimePoint now{seconds(100)};
  Actions done;
};

TEST_F(LostGpu, OtherGpusTakeTurnsAsBefore) {
  come_back(kA, kLeaseA, kGpu1, gib(70), gib(70), true);
  come_back(kB, kLeaseB, kGpu0, gib(70), gib(70), true);
  come_back(kC, kLeaseC, kGpu0, gib(70), {}, false);
  take(turns.handle(TenantStatus{kB, 0, false, 0, 0}, now));
  take(turns.handle(TenantStatus{kC, 0, false, 1, 1}, now));
  for (int i = 0; i < 100; ++i) take(turns.handle(Tick{}, now += seconds(1)));
  EXPECT_TRUE(was_told_to_move(kB)) << "C waits for its turn";
  EXPECT_FALSE(was_told_to_move(kA));
}

TEST_F(LostGpu, MemoryOnALostGpuIsKnownButShownInNoView) {
  come_back(kA, kLeaseA, kGpu1, gib(70), gib(50), true);
  EXPECT_EQ(of(kLeaseA, kGpu1).resident, gib(50));
  EXPECT_EQ(of(kLeaseA, kGpu1).out(), gib(20));
  EXPECT_EQ(HostNeeds(turns.residency()).out_now(), gib(20)) << "host memory that it has";
  EXPECT_EQ(turns.view().size(), 1u) << "only of GPUs that are there";
}

TEST_F(LostGpu, NothingMovesOrIsGrantedOnALostGpu) {
  come_back(kA, kLeaseA, kGpu1, gib(70), gib(50), false);
  take(turns.handle(TenantStatus{kA, 0, false, 1, 1}, now += seconds(1)));
  EXPECT_FALSE(was_told_to_move(kA));
  EXPECT_EQ(turns.explain(kLeaseA, now)->wait, Wait::kLost);
  done.clear();
  take(turns.handle(Grow{kA, kGpu1, 9, gib(1), false}, now));
  ASSERT_EQ(done.size(), 1u);
  EXPECT_NE(std::get<AnswerGrow>(done[0]).answer, GrowAnswer::kGranted);
  LeaseTerms terms;
  terms.id = LeaseId{9};
  terms.gpus = {{kGpu1, gib(10)}};
  EXPECT_FALSE(turns.check_lease(terms)) << "no new lease there";
}

TEST_F(LostGpu, LeaseWithoutEvictedMemoryOnTheLostGpuRuns) {
  come_back(kD, kLeaseD, kGpu0, gib(70), gib(70), false);
  take(turns.handle(TenantStatus{kD, 0, false, 1, 1}, now += seconds(1)));
  EXPECT_EQ(turns.explain(kLeaseD, now)->phase, Phase::kHolding);
  take(turns.handle(Shrink{kD, kGpu1, gib(1), {}, {}}, now));
  take(turns.handle(Measured{kD, kGpu1, gib(1)}, now));
  take(turns.handle(Evicted{kD, kGpu1, gib(1), {}, false, {}}, now));
  take(turns.handle(Restored{kD, kGpu1, gib(1), {}, false}, now));
  take(turns.handle(TenantDied{kD}, now));
  take(turns.remove_lease(kLeaseD, now));
}

TEST_F(LostGpu, WaitingLeasesContinueOnceTheGpuIsBack) {
  come_back(kA, kLeaseA, kGpu1, gib(70), gib(50), false);
  take(turns.handle(TenantStatus{kA, 0, false, 1, 1}, now += seconds(1)));
  ASSERT_TRUE(turns.set_gpu({kGpu1, gib(80), TurnsMode::kAuto, {}}));
  take(turns.handle(Tick{}, now += seconds(1)));
  EXPECT_TRUE(was_told_to_move(kA)) << "20 GiB come back";
  EXPECT_EQ(turns.view().size(), 2u);
}

TEST_F(LostGpu, GpuThatReturnsSmallerThanItsUseIsAccepted) {
  come_back(kA, kLeaseA, kGpu1, gib(70), gib(70), true);
  EXPECT_TRUE(turns.set_gpu({kGpu1, gib(40), TurnsMode::kAuto, {}}));
  take(turns.handle(Tick{}, now += seconds(1)));
  EXPECT_EQ(of(kLeaseA, kGpu1).resident, gib(70));
}

}  // namespace
}  // namespace gpurota::sched
