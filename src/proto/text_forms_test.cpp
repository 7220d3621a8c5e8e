#include "proto/text_forms.h"

#include <gtest/gtest.h>

namespace gpurota::proto {
namespace {

TEST(LeaseIdText, ReadsWhatIsWritten) {
  for (const std::uint64_t value :
       {std::uint64_t{1}, std::uint64_t{12}, std::uint64_t{INT64_MAX}}) {
    EXPECT_EQ(parse_lease_id(to_string(LeaseId{value})), LeaseId{value});
  }
}

TEST(RequestIdText, RefusesALeaseId) {
  EXPECT_EQ(parse_request_id("R7"), RequestId{7});
  EXPECT_FALSE(parse_request_id("L7"));
  EXPECT_FALSE(parse_lease_id("R7"));
  EXPECT_FALSE(parse_request_id("R0"));
}

TEST(LeaseIdText, RefusesEverythingElse) {
  for (const char* text : {"", "L", "12", "l12", "L0", "L012", "L-1", "L+1", "L1 ", " L1", "L1x",
                           "L9223372036854775808", "L99999999999999999999"}) {
    EXPECT_EQ(parse_lease_id(text), std::nullopt) << text;
  }
}

TEST(TimeText, IsUtcWithMilliseconds) {
  EXPECT_EQ(format_time(WallTime(std::chrono::milliseconds(0))), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(format_time(WallTime(std::chrono::milliseconds(1795223972125))),
            "2026-11-21T01:19:32.125Z");
}

TEST(TimeText, ReadsWrittenTimesAndOtherFractions) {
  const WallTime time(std::chrono::milliseconds(1795223972125));
  EXPECT_EQ(parse_time(format_time(time)), time);
  EXPECT_EQ(parse_time("2026-11-21T01:19:32.125999Z"), time);
  EXPECT_EQ(parse_time("2026-11-21T01:19:32Z"), time - std::chrono::milliseconds(125));
  EXPECT_EQ(parse_time("2026-11-21T01:19:32.1Z"), time - std::chrono::milliseconds(25));
}

TEST(TimeText, RefusesInvalidTimes) {
  for (const char* text : {"", "2026-11-21", "2026-11-21T01:19:32", "2026-11-21T01:19:32+01:00",
                           "2026-13-21T01:19:32Z", "2026-02-30T01:19:32Z", "2026-11-21T24:00:00Z",
                           "2026-11-21T01:60:00Z", "2026-11-21T01:19:32.Z",
                           "2026-11-21T01:19:32.xZ", "2026-11-21 01:19:32Z"}) {
    EXPECT_EQ(parse_time(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace gpurota::proto
