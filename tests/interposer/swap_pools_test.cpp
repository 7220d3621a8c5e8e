// Stream-ordered memory of swap tenants at their limit, and the pool figures that a tenant sees.
#include "swap_fixture.h"

namespace gpurota::interposer_test {
namespace {

class SwapPools : public SwapTest {
 protected:
  void expect_well(const std::string& scenario, const SwapBehaviour& behaviour = {}) {
    start_swap_daemon(behaviour, 256 * kMiB);
    const auto probe = start_probe({scenario});
    EXPECT_EQ(read_until(*probe, "(not said)"), "(ended)") << scenario;
    EXPECT_EQ(probe->wait(), 0);
    EXPECT_EQ(swap_->bad(), "");
  }
};

TEST_F(SwapPools, FreedIdleMemoryIsReusableByEveryAllocator) { expect_well("freed_is_free"); }
TEST_F(SwapPools, MemoryBusyOnAnotherStreamIsReusedAfterItsWork) {
  expect_well("freed_behind_work");
}
TEST_F(SwapPools, TakeBackMemoryFromAThreadWithoutAContext) { expect_well("freed_by_a_stranger"); }
// Trap: PyTorch frees memory of the default stream while a thread's stream still reads that memory
// (cudaMallocAsync).
TEST_F(SwapPools, KeepMemoryMappedThatAnotherStreamStillUses) {
  expect_well("freed_in_another_stream");
}
TEST_F(SwapPools, ReportTheirAttributesLikeTheDriver) { expect_well("pool_figures"); }

// Trap: the driver ends before the program does, and from then on every call fails.
TEST_F(SwapPools, ProgramThatEndsDuringAnEvictionReportsNoError) {
  start_swap_daemon({}, 256 * kMiB);
  const auto probe = start_probe({"end_slowly"});
  ASSERT_EQ(read_until(*probe, "ending"), "");
  swap_->set({.opens = false, .disturbs = true});
  EXPECT_TRUE(swap_->wait_for_returns(1));
  expect_good_end(*probe);
}

TEST_F(SwapPools, AreServedWhileTurnsAreTakenAway) {
  expect_well("freed_is_free", {.disturbs = true, .seed = 3});
  expect_well("freed_behind_work", {.disturbs = true, .seed = 4});
}

// Nearly the whole limit can be allocated, by every family and in every size, and no more.
class UsableShare : public SwapTest {
 protected:
  void expect_usable() {
    Program probe({foreign(PROBE_SIM), "--dir", dir_.file("machine"), PROBE_MACHINE, "--",
                   foreign(PROBE_USABLE), "1024", "90"},
                  lease());
    std::string said;
    for (std::string line; !(line = probe.read_line()).empty();) said += line + "\n";
    EXPECT_EQ(probe.wait(), 0) << said;
  }
};

TEST_F(UsableShare, SliceCanUseNearlyItsWholeLimit) {
  start_daemon(1024 * kMiB, kContext);
  expect_usable();
}

TEST_F(UsableShare, SwapLeaseCanUseNearlyItsWholeLimit) {
  start_swap_daemon({}, 1024 * kMiB);
  expect_usable();
  EXPECT_EQ(swap_->bad(), "");
}

}  // namespace
}  // namespace gpurota::interposer_test
