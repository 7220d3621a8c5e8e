// Stream-ordered memory of swap tenants at their limit, and what a tenant is told of its pools.
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

TEST_F(SwapPools, WhatIsFreedAndDoneCanBeHadAtOnceByEveryFamily) { expect_well("freed_is_free"); }
TEST_F(SwapPools, WhatAnotherStreamIsNotDoneWithCanBeHadBehindItsWork) {
  expect_well("freed_behind_work");
}
TEST_F(SwapPools, TellWhatTheyHaveAsTheDriverDoes) { expect_well("pool_figures"); }

TEST_F(SwapPools, AreServedWhileTurnsAreTakenAway) {
  expect_well("freed_is_free", {.disturbs = true, .seed = 3});
  expect_well("freed_behind_work", {.disturbs = true, .seed = 4});
}

}  // namespace
}  // namespace gpurota::interposer_test
