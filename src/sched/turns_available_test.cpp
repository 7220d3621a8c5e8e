// Tests that a program is granted exactly the memory that it is told is free, and no page more.
#include "sched/turns_fixture_test.h"

namespace gpurota::sched {
namespace {

class AvailableTest : public TurnsTest {
 protected:
  GrowAnswer judged(TenantId tenant, Bytes bytes) {
    Turns trial = turns;
    const Actions actions = trial.handle(Grow{tenant, kGpu0, 9999, bytes, false}, now);
    for (const Action& action : actions) {
      const auto* answer = std::get_if<AnswerGrow>(&action);
      if (answer && answer->seq == 9999) return answer->answer;
    }
    return GrowAnswer::kGranted;  // admitted: it waits for room
  }
  // The available memory is granted and a page more is not. The page covers the rounding of sums.
  void expect_exact(LeaseId lease, TenantId tenant) {
    const Bytes free = turns.available(lease, kGpu0);
    if (!free.is_zero()) {
      EXPECT_EQ(judged(tenant, free), GrowAnswer::kGranted) << free.count();
    }
    EXPECT_NE(judged(tenant, free + mib(2)), GrowAnswer::kGranted) << free.count();
  }
};

TEST_F(AvailableTest, IsTheLimitWithoutWiredMemoryOfOthers) {
  add(kLeaseA, {kA}, gib(30));
  add(kLeaseB, {kB}, gib(70));
  EXPECT_EQ(turns.available(kLeaseA, kGpu0), gib(48));
  expect_exact(kLeaseA, kA);
  expect_exact(kLeaseB, kB);
}

TEST_F(AvailableTest, ExcludesWiredMemoryOfOthers) {
  add(kLeaseA, {kA}, gib(30));
  add(kLeaseB, {kB}, gib(1));
  send(Grow{kB, kGpu0, ++seq, gib(20), true});
  ASSERT_EQ(answer(), GrowAnswer::kGranted);
  EXPECT_EQ(turns.available(kLeaseA, kGpu0), gib(30));
  expect_exact(kLeaseA, kA);
  expect_exact(kLeaseB, kB);
}

TEST_F(AvailableTest, ExcludesUnrequestedMemory) {
  add(kLeaseA, {kA}, gib(30));
  send(Measured{kA, kGpu0, gib(1)});
  turns.set_outsiders(kGpu0, gib(25));
  EXPECT_EQ(turns.available(kLeaseA, kGpu0), gib(24));
  expect_exact(kLeaseA, kA);
}

TEST_F(AvailableTest, IsBoundedByHostMemoryForOthers) {
  Settings settings;
  settings.host_budget = gib(10);
  turns.set(settings);
  add(kLeaseA, {kA}, gib(60));
  add(kLeaseB, {kB}, gib(20));
  const Bytes free = turns.available(kLeaseB, kGpu0);
  EXPECT_LT(free, gib(10));
  EXPECT_GT(free, gib(1));
  expect_exact(kLeaseB, kB);
  expect_exact(kLeaseA, kA);
}

TEST_F(AvailableTest, IsTheFreeMemoryWhereTurnsAreOff) {
  (void)turns.set_gpu({kGpu0, gib(80), TurnsMode::kOff, {}});
  add(kLeaseA, {kA}, gib(30));
  add(kLeaseB, {kB}, gib(40));
  EXPECT_EQ(turns.available(kLeaseA, kGpu0), gib(10));
  expect_exact(kLeaseA, kA);
}

TEST_F(AvailableTest, IsZeroForAnUnknownLease) {
  EXPECT_EQ(turns.available(kLeaseC, kGpu0), Bytes());
  add(kLeaseA, {kA}, gib(30));
  EXPECT_EQ(turns.available(kLeaseA, GpuUuid{"GPU-nowhere"}), Bytes());
}

}  // namespace
}  // namespace gpurota::sched
