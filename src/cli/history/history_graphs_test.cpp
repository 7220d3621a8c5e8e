#include "cli/history/history_graphs.h"

#include "base/text.h"
#include "cli/history/time_axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <sstream>

namespace gpurota::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const WallTime kNoon = WallTime(1'795'780'800s);  // 2026-11-27 12:00 UTC

class HistoryGraphs : public ::testing::Test {
 protected:
  HistoryGraphs() {
    ::setenv("TZ", "UTC0", 1);
    ::tzset();
  }
  ~HistoryGraphs() override {
    ::unsetenv("TZ");
    ::tzset();
  }
};

// Ten minutes in steps of one; the third is unknown.
proto::History::Reply ten_minutes() {
  proto::History::Reply reply;
  reply.since = kNoon;
  reply.until = kNoon + 10min;
  reply.step_seconds = 60;
  proto::GpuHistory gpu;
  gpu.gpu_uuid = {"GPU-a"};
  gpu.label = "0";
  for (int i = 0; i < 10; ++i) {
    if (i == 2) continue;
    gpu.points.push_back({.time = reply.since + i * 1min,
                          .seconds = 60,
                          .utilisation_percent = i * 10,
                          .used_bytes = gib(i < 5 ? 2 : 8)});
  }
  reply.gpus.push_back(gpu);
  return reply;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST_F(HistoryGraphs, AreDrawnToScaleWithTheirUnitsAndTimes) {
  const auto lines = lines_of(graphs_text(ten_minutes(), {38, false}, {{"GPU-a", gib(8)}}));
  EXPECT_THAT(lines, ElementsAre("from 2026-11-27 12:00:00 to 2026-11-27",  //
                                 "  12:10:00, in steps of 1 min",           //
                                 "",                                        //
                                 "GPU 0: load 48 %, max 90 %",              //
                                 "  memory 5.33 GiB, max 8.00 GiB",         //
                                 "load       100 % │                  ▃▃",  //
                                 "                 │              ▂▂▆▆██",  //
                                 "                 │            ▅▅██████",  //
                                 "                 │        ▃▃██████████",  //
                                 "                 │      ▆▆████████████",  //
                                 "               0 │▁▁▅▅  ██████████████",  //
                                 "",                                        //
                                 "memory     8 GiB │          ██████████",  //
                                 "                 │          ██████████",  //
                                 "                 │          ██████████",  //
                                 "                 │          ██████████",  //
                                 "                 │▄▄▄▄  ▄▄▄▄██████████",  //
                                 "               0 │████  ██████████████",  //
                                 "                 └┬─────────┬─────────",  //
                                 "                  12:00     12:05"));
}

TEST_F(HistoryGraphs, AsciiTerminalGetsOnlyAscii) {
  proto::History::Reply reply = ten_minutes();
  reply.gpus[0].points[0].temperature_celsius = 60;
  const std::string text = graphs_text(reply, {60, false, true}, {});
  for (const char c : text) EXPECT_TRUE(c == '\n' || (c >= ' ' && c < 127)) << text;
  EXPECT_THAT(text, HasSubstr("hottest 60 C"));
  EXPECT_THAT(text, HasSubstr("0 |___"));
  EXPECT_THAT(text, HasSubstr("`+-"));
}

TEST_F(HistoryGraphs, HaveColoursOnlyWhereTheyAreWanted) {
  EXPECT_THAT(graphs_text(ten_minutes(), {60, true}, {}), HasSubstr("\033[32m"));
  EXPECT_THAT(graphs_text(ten_minutes(), {60, false}, {}), Not(HasSubstr("\033")));
}

TEST_F(HistoryGraphs, NeverExceedTheTerminal) {
  proto::History::Reply reply = ten_minutes();
  reply.gpus[0].label.reset();
  reply.gpus[0].gpu_uuid = {"GPU-6721e2ec-7d10-3982-c399-918fddb875c3"};
  reply.gpus[0].points[0].clock_limits = {{"power", "temperature", "hardware", "power_brake"}};
  for (std::size_t width = 38; width < 140; ++width) {
    for (const std::string& line : lines_of(graphs_text(reply, {width, false}, {}))) {
      EXPECT_LE(display_width(line), width) << line;
    }
  }
  EXPECT_EQ(graph_columns(37), 0u);
  EXPECT_EQ(graph_columns(38), 20u);
  EXPECT_EQ(graph_columns(118), 100u);
}

TEST_F(HistoryGraphs, ManyGraphsAreLower) {
  proto::History::Reply reply = ten_minutes();
  const auto height = [&] { return lines_of(graphs_text(reply, {100, false}, {})).size(); };
  EXPECT_EQ(height(), 18u);
  while (reply.gpus.size() < 8) reply.gpus.push_back(reply.gpus.front());
  EXPECT_EQ(height(), 1u + 8 * (2 + 2 + 1 + 2 + 2));
}

TEST_F(HistoryGraphs, SeriesWithoutDataAreLeftOut) {
  proto::History::Reply reply = ten_minutes();
  for (proto::GpuPoint& point : reply.gpus[0].points) point.utilisation_percent.reset();
  const std::string text = graphs_text(reply, {80, false}, {});
  EXPECT_THAT(text, Not(HasSubstr("load")));
  EXPECT_THAT(text, HasSubstr("memory"));
  for (proto::GpuPoint& point : reply.gpus[0].points) point.used_bytes.reset();
  EXPECT_THAT(graphs_text(reply, {80, false}, {}),
              HasSubstr("GPU 0: nothing is known but that it was there"));
  reply.gpus.push_back({{"GPU-b"}, "1", {}});
  EXPECT_THAT(graphs_text(reply, {80, false}, {}), HasSubstr("GPU 1: nothing was sampled"));
  for (proto::GpuHistory& gpu : reply.gpus) gpu.points.clear();
  EXPECT_EQ(graphs_text(reply, {100, false}, {}),
            "nothing was sampled from 2026-11-27 12:00:00 to 2026-11-27 12:10:00\n");
}

TEST_F(HistoryGraphs, LoadOfALeaseMayExceedOneGpu) {
  proto::History::Reply reply = ten_minutes();
  reply.gpus.clear();
  proto::LeaseHistory lease;
  lease.lease_id = {12};
  lease.points.push_back({.time = kNoon,
                          .seconds = 60,
                          .used_bytes = gib(3),
                          .sm_percent = 150,
                          .evictions = 2,
                          .waited_ms = 4000});
  reply.leases.push_back(lease);
  const std::string text = graphs_text(reply, {100, false}, {});
  EXPECT_THAT(text, HasSubstr("L12: load 150 %, max 150 %; memory 3.00 GiB, max 3.00 GiB; "
                              "evictions 2; waited 4 s\n"));
  EXPECT_THAT(text, HasSubstr("\nload       200 % │"));
  EXPECT_THAT(text, HasSubstr("\nmemory     4 GiB │"));
}

TEST_F(HistoryGraphs, StepFillsItsColumnsWithPercentages) {
  proto::History::Reply reply;
  reply.since = kNoon;
  reply.until = kNoon + 100s;
  reply.step_seconds = 30;
  const auto at = [](std::chrono::seconds time, std::optional<double> share) {
    return TimedValue{kNoon + time, share};
  };
  // The first step begins before the requested time, and the last one ends after it.
  EXPECT_THAT(percentages_of({at(-10s, 0.25), at(50s, std::nullopt), at(80s, 2.0)}, reply, 10),
              ElementsAre(25, 25, -1, -1, -1, -1, -1, -1, 100, 100));
  EXPECT_THAT(percentages_of({at(0s, 0.1), at(30s, 0.3), at(60s, 0.2)}, reply, 2),
              ElementsAre(30, 30));
  EXPECT_THAT(percentages_of({}, reply, 3), Each(-1));
}

TEST_F(HistoryGraphs, UnknownMemorySizeIsRoundedUp) {
  EXPECT_EQ(round_size({}), mib(1));
  EXPECT_EQ(round_size(mib(3)), mib(4));
  EXPECT_EQ(round_size(gib(8)), gib(8));
}

std::string ticks_text(WallTime::duration span, std::size_t columns, WallTime since = kNoon) {
  std::string text;
  for (const TimeTick& tick : time_ticks(since, since + span, columns)) {
    text += (text.empty() ? "" : "|") + std::to_string(tick.column) + " " + tick.label;
  }
  return text;
}

TEST_F(HistoryGraphs, TimeLabelsAreRoundAndFit) {
  // The last label has no room.
  EXPECT_EQ(ticks_text(15min, 60),
            "0 12:00|8 12:02|16 12:04|24 12:06|32 12:08|40 12:10|48 12:12|56 ");
  EXPECT_EQ(ticks_text(20s, 40), "0 12:00:00|10 12:00:05|20 12:00:10|30 12:00:15");
  EXPECT_EQ(ticks_text(15min, 40, kNoon + 3min), "5 12:05|18 12:10|32 12:15");
  EXPECT_EQ(ticks_text(24h, 40), "0 12:00|10 18:00|20 00:00|30 06:00");
  EXPECT_EQ(ticks_text(48h, 60), "0 Nov 27 12:00|15 Nov 28 00:00|30 Nov 28 12:00|45 Nov 29 00:00");
  EXPECT_EQ(ticks_text(7 * 24h, 70, kNoon - 12h),
            "0 Nov 27|10 Nov 28|20 Nov 29|30 Nov 30|40 Dec  1|50 Dec  2|60 Dec  3");
  EXPECT_EQ(ticks_text(0s, 60), "");
  EXPECT_EQ(ticks_text(1h, 0), "");
  EXPECT_NE(ticks_text(24h * 36500, 20), "");
}

TEST_F(HistoryGraphs, TimeLabelsAreRoundInLocalTime) {
  ::setenv("TZ", "XXX-5:30", 1);
  ::tzset();
  EXPECT_EQ(ticks_text(24h, 40, kNoon - 5h - 30min), "0 12:00|10 18:00|20 00:00|30 06:00");
}

}  // namespace
}  // namespace gpurota::cli
