// The place in the queue of a lease that comes, or comes back.
#include "sched/turns_fixture_test.h"

namespace gpurota::sched {
namespace {

TEST_F(TurnsTest, ALeaseThatComesAfterAQuantumDoesNotWaitForAnother) {
  ASSERT_TRUE(turns.set_gpu({kGpu0, gib(80), TurnsMode::kAuto, seconds(10)}));
  add_two_that_do_not_fit();
  work(kA);
  ASSERT_TRUE(holds(kLeaseA));
  pass(seconds(115));  // nobody else wants the turn for eleven and a half quanta
  work(kB);
  EXPECT_TRUE(holds(kLeaseB)) << "as much as A has had, and A's quantum is over";
  pass(seconds(9));
  EXPECT_TRUE(holds(kLeaseB)) << "B has a quantum, too";
  pass(seconds(2));
  EXPECT_TRUE(holds(kLeaseA));
}

// A program of small kernels has nothing in flight in most samples.
TEST_F(TurnsTest, ALeaseThatComesBetweenTwoKernelsBringsNoCredit) {
  ASSERT_TRUE(turns.set_gpu({kGpu0, gib(80), TurnsMode::kAuto, seconds(10)}));
  add_two_that_do_not_fit();
  work(kA);
  pass(seconds(1000));
  ASSERT_TRUE(holds(kLeaseA));
  rest(kA);
  work(kB);
  work(kA);
  pass(seconds(2));
  ASSERT_TRUE(holds(kLeaseB));
  pass(seconds(10));
  EXPECT_TRUE(holds(kLeaseA)) << "B was away, and has saved nothing up";
}

// Found on a GPU: a lease waited 2.1 s, although quanta were 100 ms. While it had held the turn
// idly, another lease had wanted the turn for a moment, and wanted nothing more when it got the
// turn.
TEST_F(TurnsTest, ALeaseThatGetsTheTurnOfARestingHolderBringsNoCredit) {
  ASSERT_TRUE(turns.set_gpu({kGpu0, gib(80), TurnsMode::kAuto, seconds(10)}));
  add_two_that_do_not_fit();
  work(kA);
  pass(seconds(1000));
  rest(kA);
  pass(seconds(1));
  silent.insert(kA);
  work(kB);
  rest(kB);
  silent.clear();
  say(kA);
  ASSERT_TRUE(holds(kLeaseB));
  work(kB);
  rest(kB);
  work(kA);  // between two kernels of B
  work(kB);
  const TimePoint told = turns.explain(kLeaseA, now)->earliest.value_or(now);
  int waited = 0;
  for (; waited < 1000 && !holds(kLeaseA); ++waited) pass(seconds(1));
  EXPECT_LE(waited, 5 * 10) << "four quanta of debt, and one that B has begun";
  EXPECT_LE(now - told, seconds(1)) << "it was told so";
  EXPECT_GE(now, told);
}

}  // namespace
}  // namespace gpurota::sched
