#include "cli/history/figures_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

proto::History::Reply a_history() {
  proto::History::Reply reply;
  reply.since = WallTime(1000h);
  reply.until = WallTime(1000h + 15min);
  reply.step_seconds = 10;
  proto::GpuHistory gpu;
  gpu.gpu_uuid = {"GPU-a"};
  gpu.label = "0";
  gpu.points.push_back({.time = reply.since,
                        .seconds = 30,
                        .utilisation_percent = 100,
                        .max_utilisation_percent = 100,
                        .used_bytes = gib(2),
                        .max_used_bytes = gib(4),
                        .power_mw = 300'000,
                        .max_power_mw = 320'000,
                        .temperature_celsius = 60,
                        .max_temperature_celsius = 71,
                        .clock_limits = {{"power"}}});
  gpu.points.push_back({.time = reply.since + 5min,
                        .seconds = 10,
                        .utilisation_percent = 20,
                        .max_utilisation_percent = 40,
                        .used_bytes = gib(2)});
  reply.gpus.push_back(gpu);
  return reply;
}

TEST(FiguresText, AveragesEachPointAsLongAsItWasSampled) {
  const std::string text = figures_text(a_history(), {});
  EXPECT_THAT(text, HasSubstr("80 %"));
  EXPECT_THAT(text, HasSubstr("100 %"));
  EXPECT_THAT(text, HasSubstr("2.00 GiB"));
  EXPECT_THAT(text, HasSubstr("4.00 GiB"));
  EXPECT_THAT(text, HasSubstr("300 W"));
  EXPECT_THAT(text, HasSubstr("71 °C"));
  EXPECT_THAT(text, HasSubstr("power"));
  EXPECT_THAT(text, HasSubstr("in steps of 10 s"));
}

TEST(FiguresText, ValueUnknownToTheDriverIsADash) {
  proto::History::Reply reply = a_history();
  reply.gpus[0].points = {{.time = reply.since, .seconds = 1, .used_bytes = gib(1)}};
  const std::string text = figures_text(reply, {});
  EXPECT_THAT(text, HasSubstr(" - "));
  EXPECT_THAT(text, Not(HasSubstr("0 W")));
}

TEST(FiguresText, MissingFiguresAreReportedInASentence) {
  proto::History::Reply reply = a_history();
  reply.gpus[0].points.clear();
  EXPECT_THAT(figures_text(reply, {}), HasSubstr("nothing was sampled from"));
}

TEST(FiguresText, LongStepsPointToNewerFigures) {
  proto::History::Reply reply = a_history();
  reply.gpus[0].points.clear();
  EXPECT_THAT(figures_text(reply, {}), Not(HasSubstr("--since")));
  reply.until += 2h;
  reply.step_seconds = 20;
  EXPECT_THAT(figures_text(reply, {}), HasSubstr("in a whole step of 20 s, see --since 15m\n"));
}

TEST(FiguresText, EachStepIsARowWithTheSameNumberOfWords) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  EXPECT_EQ(steps_text(a_history(), {}),
            "TIME                 GPU  LOAD %  USED GiB   MAX  WATT  °C  LIMITED BY  TURN  XID\n"
            "1970-02-11 16:00:00  0       100      2.00  4.00   300  60  power       -       -\n"
            "1970-02-11 16:05:00  0        20      2.00     -     -   -  -           -       -\n");
  EXPECT_THAT(steps_text(a_history(), {200, false, true}), HasSubstr("WATT   C  LIMITED BY"));
}

TEST(FiguresText, WaitingTimesOfALeaseAreSummed) {
  proto::History::Reply reply = a_history();
  reply.gpus.clear();
  proto::LeaseHistory lease;
  lease.lease_id = {12};
  for (int i = 0; i < 3; ++i) {
    lease.points.push_back({.time = reply.since,
                            .seconds = 10,
                            .used_bytes = gib(1),
                            .sm_percent = 150,
                            .evictions = 2,
                            .waited_ms = 4000});
  }
  reply.leases.push_back(lease);
  const std::string text = figures_text(reply, {});
  EXPECT_THAT(text, HasSubstr("L12"));
  EXPECT_THAT(text, HasSubstr("150 %"));
  EXPECT_THAT(text, HasSubstr("12 s"));
  EXPECT_THAT(text, HasSubstr("6"));
  EXPECT_THAT(steps_text(reply, {}), ContainsRegex("L12 +1.00 +- +150 +- +2 +4.0\n"));
}

}  // namespace
}  // namespace gpurota::cli
