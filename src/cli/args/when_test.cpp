#include "cli/args/when.h"

#include "cli/args/since.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace gpurota::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// Monday, 23 November 2026, 12:30 in Berlin's winter time. Summer time ends on 25 October and
// begins on 28 March.
const WallTime kMonday{std::chrono::seconds(1795433400)};

class When : public ::testing::Test {
 protected:
  When() {
    ::setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    ::tzset();
  }
  ~When() override {
    ::unsetenv("TZ");
    ::tzset();
  }
  static std::string read(const std::string& text, WallTime after = kMonday) {
    const auto time = parse_when("--at", text, after);
    return time ? local_time(*time, "%a %F %H:%M") : time.error().message;
  }
};

TEST_F(When, IsTheNextMatchingTime) {
  ASSERT_EQ(local_time(kMonday, "%a %F %H:%M"), "Mon 2026-11-23 12:30");
  EXPECT_EQ(read("18:00"), "Mon 2026-11-23 18:00");
  EXPECT_EQ(read("09:00"), "Tue 2026-11-24 09:00");
  EXPECT_EQ(read("12:30"), "Tue 2026-11-24 12:30") << "now is over";
  EXPECT_EQ(read("Mon 09:00"), "Mon 2026-11-30 09:00");
  EXPECT_EQ(read("monday 13:00"), "Mon 2026-11-23 13:00");
  EXPECT_EQ(read("Thur 09:00"), "Thu 2026-11-26 09:00");
  EXPECT_EQ(read("tomorrow 09:00"), "Tue 2026-11-24 09:00");
  EXPECT_EQ(read("today 18:00"), "Mon 2026-11-23 18:00");
  EXPECT_EQ(read("2026-12-24 08:00"), "Thu 2026-12-24 08:00");
  EXPECT_EQ(read("2026-12-24T08:00"), "Thu 2026-12-24 08:00");
  EXPECT_EQ(read("2026-12-24T08:00:00Z"), "Thu 2026-12-24 09:00");
  EXPECT_EQ(parse_when("--at", "+3s", kMonday), kMonday + 3s);
}

TEST_F(When, ErrorHasAValidExample) {
  for (const char* const text : {"noon", "9", "today", "Mo 09:00", "Mon 25:00", "", "09:00 Mon"}) {
    EXPECT_THAT(read(text), HasSubstr("is not a time to come: write 18:00, \"Mon 09:00\"")) << text;
  }
  EXPECT_THAT(read("2026-11-23 12:00"), HasSubstr("is over: write a time after Mon 23 Nov 12:30"));
  EXPECT_THAT(read("today 09:00"), HasSubstr("is not a time to come"));
  EXPECT_THAT(read("+soon"), HasSubstr("'soon' is not a time"));
}

TEST_F(When, RefusesTimesThatTheClockSkips) {
  EXPECT_THAT(read("2027-03-28 02:30"), HasSubstr("there is no 2027-03-28 02:30 on that day"));
  EXPECT_EQ(read("2027-03-28 03:00"), "Sun 2027-03-28 03:00");
}

TEST_F(When, WeeklyBookingKeepsItsLocalTimeAcrossClockChanges) {
  const WallTime first = *parse_when("--at", "2027-03-22 09:00", kMonday);
  const auto weeks = weekly(first, 3);
  ASSERT_EQ(weeks.size(), 3U);
  EXPECT_EQ(local_time(weeks[1], "%a %F %H:%M"), "Mon 2027-03-29 09:00");
  EXPECT_EQ(weeks[1] - weeks[0], 7 * 24h - 1h) << "summer time has begun";
  EXPECT_EQ(weeks[2] - weeks[1], 7 * 24h);
}

}  // namespace
}  // namespace gpurota::cli
