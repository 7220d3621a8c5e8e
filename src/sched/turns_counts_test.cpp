// Tests that reports of moves count every byte once.
#include "sched/turns_fixture_test.h"

namespace gpurota::sched {
namespace {

class CountsTest : public TurnsTest {
 protected:
  GpuView gpu(std::size_t i = 0) const { return turns.view()[i]; }
  static Bytes sum(const Moved& moved) { return moved.in + moved.out; }
  // Memory moved in the listed switches, and since.
  static Bytes listed(const GpuView& view) {
    Bytes all = sum(view.since_switch);
    for (const SwitchRecord& record : view.switches) all += sum(record.moved);
    return all;
  }
  Bytes ordered_out(const GpuUuid& gpu) const {
    Bytes all;
    for (const Evict& e : of<Evict>()) all += e.gpu == gpu ? e.bytes : Bytes();
    return all;
  }
  void expect_all_is_told(std::size_t i, const GpuUuid& uuid) {
    const GpuView view = gpu(i);
    ASSERT_LT(view.switches.size(), 16u) << "or older ones are not listed";
    EXPECT_EQ(view.counts.evicted, ordered_out(uuid));
    EXPECT_EQ(listed(view), view.counts.evicted + view.counts.restored);
  }
};

TEST_F(CountsTest, MemoryEvictedForAGrowthCountsInTheSwitch) {
  add_two_that_do_not_fit();
  EXPECT_EQ(gpu().counts.evicted, gib(60));
  expect_all_is_told(0, kGpu0);
}

TEST_F(CountsTest, MovesForATurnThatDidNotBeginCountInTheNext) {
  add_two_that_do_not_fit();
  work(kB);
  unused.insert(kA);  // kA restores nothing
  work(kA);
  for (int i = 0; i < 100; ++i) pass(seconds(1));
  EXPECT_FALSE(holds(kLeaseA));
  EXPECT_FALSE(gpu().since_switch.out.is_zero()) << "room was made for it";
  unused.clear();
  for (int i = 0; i < 100 && !holds(kLeaseA); ++i) pass(seconds(1));
  ASSERT_TRUE(holds(kLeaseA));
  EXPECT_TRUE(sum(gpu().since_switch).is_zero());
  expect_all_is_told(0, kGpu0);
}

TEST_F(CountsTest, MoveOnTwoGpusCountsOnceOnEach) {
  add(kLeaseA, {kA}, gib(50), {kGpu0, kGpu1});
  add(kLeaseB, {kB}, gib(40), {kGpu0, kGpu1});
  let_b_begin();
  expect_all_is_told(0, kGpu0);
  expect_all_is_told(1, kGpu1);
}

}  // namespace
}  // namespace gpurota::sched
