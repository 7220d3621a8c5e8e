// Orders to evict that free nothing: the eviction failed, or there is nothing to evict.
#include "sched/turns_fixture_test.h"

namespace gpurota::sched {
namespace {

class VainTurns : public TurnsTest {
 protected:
  // B works and needs the memory of A. A is idle, and has been added to `those`.
  void let_b_need_a(std::set<TenantId>& those) {
    add_two_that_do_not_fit();
    work(kA);
    pass(seconds(3));
    those.insert(kA);
    rest(kA);
    pass(seconds(1000));
    work(kB);
  }
};

// For example, a tenant that was granted memory but has not allocated it has nothing to evict.
// Until the tenant reports that, repeated orders would keep both sides busy.
TEST_F(VainTurns, TenantWithNothingToEvictIsNotAskedRepeatedly) {
  let_b_need_a(hollow);
  pass(seconds(1));
  EXPECT_GE(evictions[kA], 2) << "but now and then";
  EXPECT_LE(evictions[kA], 50);
  EXPECT_TRUE(of<ReportTrouble>().empty());
  EXPECT_FALSE(holds(kLeaseB));
  send(Shrink{kA, kGpu0, gib(70), {}, {}, {}});
  pass(milliseconds(1));
  EXPECT_TRUE(holds(kLeaseB));
}

// A tenant that does not use its room can still be evicted: others need not wait for the retry.
TEST_F(VainTurns, TenantThatRestoresNothingDelaysNoOther) {
  add_two_that_do_not_fit();
  unused.insert(kA);
  work(kB);
  work(kA);
  int idle = 0;
  for (int i = 0; i < 100'000; ++i) {
    pass(milliseconds(1));
    if (!open.contains(kB)) ++idle;
  }
  EXPECT_LE(idle, 50);
}

// The memory was freed while it was being restored: no retry is needed.
TEST_F(VainTurns, ATenantThatReportsLessThanItsRoomContinuesAtOnce) {
  add_two_that_do_not_fit();
  rest(kB);
  unused.insert(kA);
  work(kA);
  pass(milliseconds(1));
  ASSERT_FALSE(holds(kLeaseA));
  const Bytes out = turns.residency().of_lease(kLeaseA, GpuSlot{0}).out();
  ASSERT_FALSE(out.is_zero());
  send(Shrink{kA, kGpu0, {}, out, {}, {}});
  EXPECT_TRUE(holds(kLeaseA));
}

TEST_F(VainTurns, FailedEvictionIsReportedAndRetried) {
  let_b_need_a(failing);
  pass(milliseconds(100));
  EXPECT_EQ(of<ReportTrouble>().at(0).trouble, Trouble::kMoveFailed);
  EXPECT_FALSE(holds(kLeaseB));
  EXPECT_EQ(turns.residency().of_lease(kLeaseA, GpuSlot{0}).resident, gib(70));
  failing.clear();
  pass(seconds(3));
  EXPECT_TRUE(holds(kLeaseB));
}

}  // namespace
}  // namespace gpurota::sched
