// Orders to evict that bring nothing: they failed, or there is nothing to bring out.
#include "sched/turns_fixture_test.h"

namespace gpurota::sched {
namespace {

class VainTurns : public TurnsTest {
 protected:
  // B works and needs the memory of A, which rests and is one of `those` by now.
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

// It was granted memory, say, and has not made it: nothing is to be had of it until it says so, and asking on and on
// would keep both sides busy with that.
TEST_F(VainTurns, ATenantThatHasNothingToBringOutIsNotAskedOnAndOn) {
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

TEST_F(VainTurns, AFailedEvictionIsReportedAndAnotherGivesOrItIsTriedAgain) {
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
