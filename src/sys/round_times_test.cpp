#include "sys/round_times.h"

#include <gtest/gtest.h>

namespace gpurota::sys {
namespace {

using namespace std::chrono_literals;

TEST(RoundTimes, KeepsLongestSinceStartAndExpiresLastMinute) {
  RoundTimes times;
  const TimePoint start{1h};
  EXPECT_EQ(times.longest(start).since_start, Duration(0));
  times.note(start, start + 2s);
  times.note(start + 3s, start + 3s + 5ms);
  EXPECT_EQ(times.longest(start + 4s).since_start, 2s);
  EXPECT_EQ(times.longest(start + 4s).last_minute, 2s);
  times.note(start + 50s, start + 50s + 7ms);
  EXPECT_EQ(times.longest(start + 61s).last_minute, 2s) << "no minute is over yet";
  EXPECT_EQ(times.longest(start + 72s).last_minute, 7ms);
  EXPECT_EQ(times.longest(start + 10min).last_minute, Duration(0));
  EXPECT_EQ(times.longest(start + 10min).since_start, 2s);
}

TEST(RoundTimes, ReusedSliceIsReset) {
  RoundTimes times;
  const TimePoint start{1h};
  times.note(start, start + 2s);
  times.note(start + 70s, start + 70s + 1ms);
  EXPECT_EQ(times.longest(start + 71s).last_minute, 1ms);
}

}  // namespace
}  // namespace gpurota::sys
