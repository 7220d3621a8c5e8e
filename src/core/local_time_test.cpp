#include "core/local_time.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace gpurota {
namespace {

using namespace std::chrono_literals;

TEST(LocalTime, ShowsTheDateOnlyAsFarAsNeeded) {
  ::setenv("TZ", "UTC0", 1);
  ::tzset();
  const WallTime now{std::chrono::seconds(1795437000)};  // Monday, 23 November 2026, 12:30
  EXPECT_EQ(local_time_text(now + 2h, now), "14:30");
  EXPECT_EQ(local_time_text(now - 2h, now), "10:30");
  EXPECT_EQ(local_time_text(now + 24h, now), "Tue 12:30");
  EXPECT_EQ(local_time_text(now + 7 * 24h, now), "Mon 30 Nov 12:30");
  EXPECT_EQ(local_time_text(now - 24h, now), "Sun 22 Nov 12:30");
  ::unsetenv("TZ");
  ::tzset();
}

}  // namespace
}  // namespace gpurota
