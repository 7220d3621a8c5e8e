#include "web/history_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::web {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

proto::GpuPoint a_point(WallTime time, int percent) {
  proto::GpuPoint point;
  point.time = time;
  point.utilisation_percent = percent;
  return point;
}

TEST(HistoryJson, GapsAreNullAndAllListsHaveOneLength) {
  proto::History::Reply history;
  history.since = WallTime(1000s);
  history.until = WallTime(1060s);
  history.step_seconds = 10;
  history.gpus.resize(2);
  history.gpus[0].label = "0";
  history.gpus[0].points = {a_point(WallTime(1010s), 5), a_point(WallTime(1030s), 7)};
  history.gpus[1].points = {a_point(WallTime(1020s), 9)};
  const std::string text = history_json(history);
  EXPECT_THAT(text, HasSubstr("\"first\":\"1970-01-01T00:16:50.000Z\""));
  EXPECT_THAT(text, HasSubstr("\"step_seconds\":10,\"steps\":3"));
  EXPECT_THAT(text, HasSubstr("\"label\":\"0\",\"utilisation_percent\":[5,null,7]"));
  EXPECT_THAT(text, HasSubstr("\"label\":null,\"utilisation_percent\":[null,9,null]"));
  EXPECT_THAT(text, HasSubstr("\"power_mw\":[null,null,null]"));
}

TEST(HistoryJson, EmptyOrInvalidHistoryIsShort) {
  proto::History::Reply history;
  EXPECT_THAT(history_json(history), HasSubstr("\"steps\":0,\"gpus\":[]"));
  history.gpus.resize(1);
  history.gpus[0].points = {a_point(WallTime(0s), 1), a_point(WallTime(1'000'000'000s), 2)};
  EXPECT_THAT(history_json(history), HasSubstr("\"steps\":2000"));
}

}  // namespace
}  // namespace gpurota::web
