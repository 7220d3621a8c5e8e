// Tenants that lose their connection and come back, and memory that the driver shows beside their
// reports.
#include "sched/turns.h"

#include <gtest/gtest.h>

namespace gpurota::sched {
namespace {

const GpuUuid kGpu{"GPU-0"};
constexpr TenantId kOld{1}, kNew{2}, kOther{3};
constexpr LeaseId kLeaseA{1}, kLeaseB{2};

class ReconnectTest : public testing::Test {
 protected:
  ReconnectTest() {
    (void)turns.set_gpu({kGpu, gib(80), TurnsMode::kAuto, {}});
    for (const LeaseId id : {kLeaseA, kLeaseB}) {
      LeaseTerms terms;
      terms.id = id;
      terms.gpus = {{kGpu, gib(78)}};
      turns.add_lease(terms);
    }
    send(AddTenant{kOld, kLeaseA, {}, false});
    send(Grow{kOld, kGpu, 1, gib(50), false});
  }
  Actions send(const Event& event) { return turns.handle(event, now); }
  Bytes used() const { return turns.residency().used(GpuSlot{0}); }
  static bool closes(const Actions& actions, TenantId tenant) {
    for (const Action& action : actions) {
      const auto* gate = std::get_if<SetGate>(&action);
      if (gate && gate->tenant == tenant && gate->order == GateOrder::kClose) return true;
    }
    return false;
  }

  Turns turns;
  TimePoint now{std::chrono::hours(1)};
};

TEST_F(ReconnectTest, ATenantThatComesBackIsCountedOnceAndItsRoomIsKept) {
  send(AddTenant{kOther, kLeaseB, {}, false});
  send(Reachable{kOld, false});
  send(Grow{kOther, kGpu, 1, gib(50), false});
  const Actions actions =
      send(AddTenant{kNew, kLeaseA, {{kGpu, gib(50), gib(50), {}}}, true, kOld});
  for (const Action& action : actions) {
    const auto* answer = std::get_if<AnswerGrow>(&action);
    EXPECT_TRUE(!answer || answer->tenant != kOther) << "while its memory was still there";
  }
  EXPECT_EQ(used(), gib(50));
  EXPECT_TRUE(turns.residency().of_lease(kLeaseA, GpuSlot{0}).lingering.is_zero());
}

TEST_F(ReconnectTest, MissedEndOfATurnIsSentAgain) {
  constexpr TenantId kBusy{4};
  send(AddTenant{kOther, kLeaseB, {}, false});
  send(AddTenant{kBusy, kLeaseA, {}, false});
  send(TenantStatus{kOther, 1, false, 1, 1});
  send(TenantStatus{kBusy, 1, true, 0, 0});
  send(Grow{kOther, kGpu, 1, gib(50), false});
  now += std::chrono::minutes(10);
  (void)send(Tick{});  // kLeaseA leaves: kBusy does not drain
  ASSERT_EQ(turns.explain(kLeaseA, now)->phase, Phase::kLeaving);
  const Actions actions =
      send(AddTenant{kNew, kLeaseA, {{kGpu, gib(50), gib(50), {}}}, true, kOld});
  EXPECT_TRUE(closes(actions, kNew));
}

TEST_F(ReconnectTest, ReconnectingGivesNoTurn) {
  send(AddTenant{kOther, kLeaseB, {}, false});
  send(TenantStatus{kOld, 1, false, 0, 0});
  for (const Action& action : send(Grow{kOther, kGpu, 1, gib(50), false})) {
    const auto* gate = std::get_if<SetGate>(&action);  // it leaves at once
    if (gate && gate->tenant == kOld) send(TenantStatus{kOld, gate->seq, false, 0, 0});
  }
  ASSERT_EQ(turns.explain(kLeaseA, now)->phase, Phase::kApart);
  send(AddTenant{kNew, kLeaseA, {{kGpu, gib(50), gib(50), {}}}, true, kOld});
  EXPECT_EQ(turns.explain(kLeaseA, now)->phase, Phase::kApart);
}

TEST_F(ReconnectTest, MemoryBeyondTheReportedIsCountedAsWired) {
  send(Measured{kOld, kGpu, gib(2)});
  EXPECT_EQ(used(), gib(52));
  EXPECT_EQ(turns.residency().wired(GpuSlot{0}), gib(2));
  const Actions refused = send(Grow{kOld, kGpu, 2, gib(27), false});
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(std::get<AnswerGrow>(refused[0]).answer, GrowAnswer::kRefusedLimit);
  send(Measured{kOld, kGpu, {}});
  EXPECT_EQ(used(), gib(50));
  send(Measured{TenantId{99}, kGpu, gib(9)});
  send(TenantDied{kOld});
  send(Measured{kOld, kGpu, gib(9)});
  EXPECT_EQ(used(), gib(50)) << "nothing is learnt about dead tenants";
}

}  // namespace
}  // namespace gpurota::sched
