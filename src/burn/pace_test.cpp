#include "burn/pace.h"

#include <gtest/gtest.h>

namespace gpurota::burn {
namespace {

TEST(Pace, ArrivesAtTheTargetOnAFastAndOnASlowGpu) {
  for (const double each_ms : {0.1, 0.7, 3.0}) {
    Pace pace(12, 1'000);
    for (int i = 0; i < 20; ++i) pace.on_measured(pace.amount(), pace.amount() * each_ms);
    EXPECT_NEAR(pace.amount() * each_ms, 12, each_ms + 0.1);
  }
}

TEST(Pace, AmountStaysBetweenOneAndItsMaximum) {
  Pace pace(12, 8);
  for (int i = 0; i < 20; ++i) pace.on_measured(pace.amount(), 1'000);
  EXPECT_EQ(pace.amount(), 1U);
  for (int i = 0; i < 20; ++i) pace.on_measured(pace.amount(), 0);
  EXPECT_EQ(pace.amount(), 8U);
}

TEST(Pace, IsNotThrownOffByOneSlowStep) {
  Pace pace(12, 1'000);
  for (int i = 0; i < 10; ++i) pace.on_measured(pace.amount(), pace.amount() * 0.5);
  pace.on_measured(pace.amount(), 5'000);
  EXPECT_GE(pace.amount(), 11U);
}

}  // namespace
}  // namespace gpurota::burn
