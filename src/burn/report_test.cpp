#include "burn/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::burn {
namespace {

using testing::HasSubstr;

GpuReport busy() {
  GpuReport gpu{1, "GPU-11", "Some \"GPU\"", {}};
  gpu.stats.target = gpu.stats.held = gpu.stats.most_held = gib(70);
  gpu.stats.checked_bytes = gib(1000).count();
  gpu.stats.flops = 2e14;
  gpu.stats.seconds = 10;
  gpu.stats.temperature_c = 64;
  gpu.stats.power_watts = 611.6;
  return gpu;
}

TEST(BurnReport, ShowsRatesSinceTheLastLine) {
  const GpuReport gpu = busy();
  Stats before = gpu.stats;
  before.seconds = 5;
  before.checked_bytes = gib(900).count();
  before.flops = 1e14;
  const std::string line = progress_line(gpu, before, false);
  EXPECT_THAT(line, HasSubstr("GPU 1  10 s  70 GiB held  20.0 GiB/s checked  20.00 TFLOP/s"));
  EXPECT_THAT(line, HasSubstr("no errors  64 C  612 W"));
}

TEST(BurnReport, OmitsChecksIfNothingIsChecked) {
  EXPECT_EQ(progress_line(busy(), {}, true), "GPU 1  10 s  70 GiB held  64 C  612 W");
}

TEST(BurnReport, UncheckedMemoryIsNotReportedAsFreeOfErrors) {
  GpuReport gpu = busy();
  gpu.stats.checked_bytes = 0;
  gpu.stats.flops = 0;
  EXPECT_THAT(summary_line(gpu, false), HasSubstr("nothing checked yet"));
  EXPECT_THAT(summary_line(busy(), false), HasSubstr("no errors"));
}

TEST(BurnReport, ShowsWhichBitsWereWrong) {
  GpuReport gpu = busy();
  gpu.stats.wrong_words = 3;
  gpu.stats.wrong_bits = 1ULL << 17;
  EXPECT_THAT(summary_line(gpu, false), HasSubstr("3 WRONG WORDS (bits 0x0000000000020000)"));
}

TEST(BurnReport, IsOneLineOfJsonWithForeignTextQuoted) {
  const std::string line = json_line({busy()}, End::kTime);
  EXPECT_THAT(line, HasSubstr(R"("name":"Some \"GPU\"")"));
  EXPECT_THAT(line, HasSubstr(R"("ended":"time","errors":0)"));
  EXPECT_THAT(line, HasSubstr(R"("error":null)"));
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

TEST(BurnReport, ExitCodeSaysWhetherTheGpuIsGood) {
  EXPECT_EQ(exit_code({busy()}, 0), kExitFine);
  EXPECT_EQ(exit_code({busy()}, 2), 130);
  GpuReport wrong = busy();
  wrong.stats.wrong_results = 1;
  EXPECT_EQ(exit_code({busy(), wrong}, 2), kExitWrong);
  GpuReport failed = busy();
  failed.stats.error = "no memory";
  EXPECT_EQ(exit_code({failed, busy()}, 0), kExitFailed);
  EXPECT_EQ(exit_code({failed, wrong}, 0), kExitWrong);
  failed.stats.is_faulty = true;
  EXPECT_EQ(exit_code({failed}, 0), kExitWrong);
}

TEST(BurnReport, ErrorsOfTheSelfTestAreNoErrorsIfTheyWereFound) {
  GpuReport tested = busy();
  tested.stats.wrong_words = 1;
  tested.stats.wrong_results = 64;
  tested.stats.self_test = true;
  EXPECT_EQ(exit_code({tested}, 0), kExitFine);
  tested.stats.self_test = false;
  EXPECT_EQ(exit_code({tested}, 0), kExitWrong);
}

}  // namespace
}  // namespace gpurota::burn
