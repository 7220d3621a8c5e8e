// Captures: work that ends only once the program has the memory that it allocates in the capture.
#include "sched/turns_fixture_test.h"

namespace gpurota::sched {
namespace {

// Two leases hold a GPU as turns begin there. One records a graph, and its work ends only once it
// has the memory that it asks for in the capture. The other waits for memory, too, but can drain.
class Captures : public TurnsTest {
 protected:
  // A's work does not end. A and B each wait for 10 GiB.
  void begin_turns_while_a_captures() {
    add(kLeaseA, {kA}, gib(60));
    work(kA);
    stuck.insert(kA);
    add(kLeaseB, {kB}, gib(15));
    work(kB);
    send(Grow{kB, kGpu0, ++seq, gib(10), false});
    ASSERT_EQ(turns.explain(kLeaseA, now)->phase, Phase::kLeaving);
    ASSERT_TRUE(holds(kLeaseB));
    done.clear();
    send(Grow{kA, kGpu0, ++seq, gib(10), false});
  }
};

TEST_F(Captures, WaitingLeaseThatCanDrainMakesRoomForACapture) {
  begin_turns_while_a_captures();
  pass(seconds(1));
  ASSERT_FALSE(of<AnswerGrow>().empty()) << "each waits for the other";
  EXPECT_EQ(of<AnswerGrow>().front().tenant, kA);
  stuck.erase(kA);
  say(kA);
  pass(seconds(100));
  EXPECT_EQ(of<AnswerGrow>().back().tenant, kB);
}

// Neither lease can have its memory before the other has ended: one of them is refused, each time
// it asks.
TEST_F(Captures, OneOfTwoLeasesThatCannotDrainIsRefusedAtItsDeadline) {
  stuck.insert(kB);
  begin_turns_while_a_captures();
  pass(seconds(29));
  EXPECT_TRUE(of<AnswerGrow>().empty());
  pass(seconds(2));
  ASSERT_EQ(of<AnswerGrow>().size(), 1u);
  EXPECT_EQ(answer(), GrowAnswer::kRefusedCapacity);
  const TenantId refused = of<AnswerGrow>()[0].tenant;
  const TenantId other = refused == kA ? kB : kA;
  send(Grow{refused, kGpu0, ++seq, gib(9), false});
  pass(seconds(1));
  ASSERT_EQ(of<AnswerGrow>().size(), 2u);
  EXPECT_EQ(answer(), GrowAnswer::kRefusedCapacity);
  stuck.erase(refused);
  say(refused);
  pass(seconds(1));
  ASSERT_EQ(of<AnswerGrow>().size(), 3u);
  EXPECT_EQ(answer(), GrowAnswer::kGranted);
  EXPECT_EQ(of<AnswerGrow>().back().tenant, other);
  EXPECT_LE(turns.residency().used(GpuSlot{0}), gib(80));
}

}  // namespace
}  // namespace gpurota::sched
