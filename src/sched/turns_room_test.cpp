// Tests of leases that have room, and of leases that lose it because memory that cannot be moved
// has grown.
#include "sched/host_needs.h"
#include "sched/turns_fixture_test.h"

namespace gpurota::sched {
namespace {

class RoomTest : public TurnsTest {
 protected:
  explicit RoomTest(const Settings& settings = {}) : TurnsTest(settings) {}

  // A has 70 of 80 GiB, and B has 6 GiB. 5 GiB of each lease cannot move.
  void add_a_large_one_and_a_small_one() {
    add(kLeaseA, {kA}, gib(65));
    add(kLeaseB, {kB}, gib(1));
    for (const TenantId t : {kA, kB}) send(Grow{t, kGpu0, ++seq, gib(5), true});
    pass(seconds(10));
    ASSERT_EQ(answer(), GrowAnswer::kGranted);
  }
  // Processes without a lease take `bytes`.
  void let_outsiders_have(Bytes bytes) {
    turns.set_outsiders(kGpu0, bytes);
    pass(milliseconds(1));
  }
  GrowAnswer grow(TenantId tenant, Bytes bytes, bool wired = false) {
    const std::size_t before = of<AnswerGrow>().size();
    send(Grow{tenant, kGpu0, ++seq, bytes, wired});
    pass(seconds(1000));
    return of<AnswerGrow>().size() > before ? answer() : GrowAnswer::kRefusedTurnsOff;
  }
  Wait wait_of(LeaseId lease) { return turns.explain(lease, now)->wait; }
  bool is_told(Trouble trouble, LeaseId lease) {
    const auto all = of<ReportTrouble>();
    return std::any_of(all.begin(), all.end(), [&](const ReportTrouble& r) {
      return r.trouble == trouble && r.lease == lease;
    });
  }
};

TEST_F(RoomTest, SmallLeaseGrowsAlthoughALargeOneNoLongerFits) {
  add_a_large_one_and_a_small_one();
  let_outsiders_have(gib(6));
  EXPECT_EQ(grow(kB, mib(2)), GrowAnswer::kGranted);
  EXPECT_EQ(grow(kB, gib(20)), GrowAnswer::kGranted);
  EXPECT_EQ(grow(kA, mib(2)), GrowAnswer::kRefusedCapacity) << "it has no room itself";
  EXPECT_EQ(grow(kB, gib(50)), GrowAnswer::kRefusedCapacity) << "nor has this one for so much";
}

TEST_F(RoomTest, ContextOfASmallLeaseTakesNoRoomOfALargeOne) {
  add_a_large_one_and_a_small_one();
  let_outsiders_have(gib(6));
  EXPECT_EQ(grow(kB, gib(4), true), GrowAnswer::kGranted);
  EXPECT_EQ(grow(kB, gib(2), true), GrowAnswer::kRefusedCapacity) << "65 + 16 of 80 GiB";
  let_outsiders_have({});
  EXPECT_EQ(grow(kB, gib(2), true), GrowAnswer::kRefusedCapacity);
  EXPECT_EQ(grow(kB, gib(1), true), GrowAnswer::kGranted);
}

TEST_F(RoomTest, LeaseThatNoLongerFitsIsWarnedOnceAndContinuesWhenItFits) {
  add_a_large_one_and_a_small_one();
  let_outsiders_have(gib(6));
  work(kB);
  ASSERT_EQ(grow(kB, gib(20)), GrowAnswer::kGranted);
  work(kA);
  EXPECT_EQ(wait_of(kLeaseA), Wait::kNoRoom);
  pass(seconds(1));
  EXPECT_FALSE(is_told(Trouble::kNoRoom, kLeaseA)) << "it may be over soon";
  pass(seconds(1000));
  EXPECT_EQ(of<ReportTrouble>().size(), 1u);
  EXPECT_TRUE(is_told(Trouble::kNoRoom, kLeaseA));
  EXPECT_TRUE(holds(kLeaseB));
  let_outsiders_have({});
  pass(seconds(100));
  EXPECT_TRUE(holds(kLeaseA) || wait_of(kLeaseA) == Wait::kTurn);
}

TEST_F(RoomTest, AResidentLeaseRunsWhateverHasComeBesideIt) {
  add_a_large_one_and_a_small_one();
  let_outsiders_have(gib(6));
  rest(kB);
  work(kA);
  EXPECT_TRUE(holds(kLeaseA));
  EXPECT_TRUE(open.contains(kA));
}

TEST_F(RoomTest, MoreCapacityIsNotRefusedWhereItIsStillTooLittle) {
  add_a_large_one_and_a_small_one();
  let_outsiders_have(gib(10));
  EXPECT_TRUE(turns.set_gpu({kGpu0, gib(81), TurnsMode::kAuto, {}}));
  EXPECT_TRUE(turns.set_gpu({kGpu0, gib(81), TurnsMode::kAuto, seconds(1)}));
  EXPECT_FALSE(turns.set_gpu({kGpu0, gib(80), TurnsMode::kAuto, {}}));
}

class LittleHostMemory : public RoomTest {
 protected:
  LittleHostMemory() : RoomTest(make()) {}
  static Settings make() {
    Settings settings;
    settings.host_budget = gib(21);
    return settings;
  }
  Bytes out() const { return HostNeeds(turns.residency()).out_now(); }
};

// 10 GiB of each lease have to be evicted in turn. Once outsiders have come, host memory has no
// room for a switch.
TEST_F(LittleHostMemory, TurnIsKeptIfNothingCanBeEvicted) {
  add(kLeaseA, {kA}, gib(45));
  add(kLeaseB, {kB}, gib(45));
  let_b_begin();
  let_outsiders_have(gib(11));
  work(kA);
  int ran = 0;
  for (int i = 0; i < 1000; ++i) {
    pass(seconds(1));
    EXPECT_LE(out(), gib(21));
    if (!open.empty()) ++ran;
  }
  EXPECT_EQ(ran, 1000);
  EXPECT_TRUE(wait_of(kLeaseA) == Wait::kNoHost || wait_of(kLeaseB) == Wait::kNoHost);
  let_outsiders_have({});
  const LeaseId waits = holds(kLeaseA) ? kLeaseB : kLeaseA;
  for (int i = 0; i < 100 && !holds(waits); ++i) pass(seconds(1));
  EXPECT_TRUE(holds(waits));
}

TEST_F(LittleHostMemory, RequestThatNeedsNoHostMemoryIsNotRefused) {
  add(kLeaseA, {kA}, gib(45));
  add(kLeaseB, {kB}, gib(45));
  let_outsiders_have(gib(30));
  EXPECT_EQ(grow(kA, gib(1)), GrowAnswer::kRefusedHost);
  add(kLeaseC, {kC}, gib(20), {kGpu1});
  EXPECT_EQ(answer(), GrowAnswer::kGranted) << "all of it fits there";
}

}  // namespace
}  // namespace gpurota::sched
