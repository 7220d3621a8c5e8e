#include "cli/text/figures_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

using namespace std::chrono_literals;
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
  const std::string text = figures_text(a_history(), {}, false);
  EXPECT_THAT(text, HasSubstr("80 %"));
  EXPECT_THAT(text, HasSubstr("100 %"));
  EXPECT_THAT(text, HasSubstr("2.00 GiB"));
  EXPECT_THAT(text, HasSubstr("4.00 GiB"));
  EXPECT_THAT(text, HasSubstr("300 W"));
  EXPECT_THAT(text, HasSubstr("71 °C"));
  EXPECT_THAT(text, HasSubstr("power"));
  EXPECT_THAT(text, HasSubstr("in steps of 10 s"));
}

TEST(FiguresText, WhatTheDriverDoesNotTellIsADash) {
  proto::History::Reply reply = a_history();
  reply.gpus[0].points = {{.time = reply.since, .seconds = 1, .used_bytes = gib(1)}};
  const std::string text = figures_text(reply, {}, false);
  EXPECT_THAT(text, HasSubstr(" - "));
  EXPECT_THAT(text, Not(HasSubstr("0 W")));
}

TEST(FiguresText, OfNothingIsASentence) {
  proto::History::Reply reply = a_history();
  reply.gpus[0].points.clear();
  EXPECT_THAT(figures_text(reply, {}, false), HasSubstr("nothing was sampled from"));
}

TEST(FiguresText, HasAGraphOnlyWhereTheTerminalCanShowIt) {
  EXPECT_THAT(figures_text(a_history(), {200, false}, true), HasSubstr("█"));
  EXPECT_THAT(figures_text(a_history(), {200, false}, false), Not(HasSubstr("█")));
}

TEST(FiguresText, AGraphIsAsHighAsItsValuesAndHasGaps) {
  EXPECT_EQ(graph_text({0, 50, 100, std::nullopt, 1000}), "▁▄█ █");
}

TEST(FiguresText, OfALeaseAddsUpWhatItWaited) {
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
  const std::string text = figures_text(reply, {}, false);
  EXPECT_THAT(text, HasSubstr("L12"));
  EXPECT_THAT(text, HasSubstr("150 %"));
  EXPECT_THAT(text, HasSubstr("12 s"));
  EXPECT_THAT(text, HasSubstr("6"));
}

}  // namespace
}  // namespace gpurota::cli
