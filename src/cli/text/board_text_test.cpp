#include "cli/text/board_text.h"

#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

TEST(BoardText, HasLimitsWhereTheyAreKnown) {
  proto::Gpu gpu;
  gpu.power_mw = 611'700;
  gpu.temperature_celsius = 71;
  gpu.sm_clock_mhz = 1755;
  EXPECT_EQ(power_text(gpu), "612 W");
  EXPECT_EQ(heat_text(gpu), "71 °C");
  EXPECT_EQ(clock_rate_text(gpu), "1755 MHz");
  gpu.power_limit_mw = 700'000;
  gpu.slowdown_celsius = 87;
  gpu.clock_limits = {{"power", "temperature"}};
  EXPECT_EQ(power_text(gpu), "612/700 W");
  EXPECT_EQ(heat_text(gpu), "71/87 °C");
  EXPECT_EQ(clock_rate_text(gpu), "1755 MHz, limited by power and temperature");
}

TEST(BoardText, UnknownFieldsAreEmpty) {
  const proto::Gpu gpu;
  EXPECT_EQ(power_text(gpu) + heat_text(gpu) + clock_rate_text(gpu) + board_errors_text(gpu), "");
}

TEST(BoardText, ErrorsAreCountedIfThereAreAny) {
  proto::Gpu gpu;
  gpu.xid_errors = 0;
  gpu.ecc_uncorrected = 2;
  EXPECT_EQ(board_errors_text(gpu), "2 uncorrected ECC errors");
  gpu.xid_errors = 1;
  EXPECT_EQ(board_errors_text(gpu), "1 Xid error, 2 uncorrected ECC errors");
}

}  // namespace
}  // namespace gpurota::cli
