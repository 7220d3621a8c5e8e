#include "core/reason.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace gpurota {
namespace {

using namespace std::chrono_literals;

class ReasonText : public ::testing::Test {
 protected:
  ReasonText() {
    ::setenv("TZ", "UTC0", 1);
    ::tzset();
  }
  ~ReasonText() override {
    ::unsetenv("TZ");
    ::tzset();
  }

  const WallTime now_{std::chrono::seconds(1795437000)};  // Monday, 23 November 2026, 12:30
};

TEST_F(ReasonText, InsertsTheTimeAtItsPlace) {
  const Reason reason{ReasonCode::kLeasedUntil, "waits for GPU 3: L7 ends at {time}", now_ + 2h};
  EXPECT_EQ(reason_text(reason, now_), "waits for GPU 3: L7 ends at 14:30");
  EXPECT_EQ(reason_text("free until {time}, then not", now_ + 24h, now_),
            "free until Tue 12:30, then not");
  EXPECT_EQ(reason_text("idle until {time}", now_ + 45s, now_), "idle until 12:30:45");
}

TEST_F(ReasonText, IsTheSentenceWhereNoTimeIsKnown) {
  EXPECT_EQ(reason_text({ReasonCode::kLeasedOpenEnded, "L7 has no time limit"}, now_),
            "L7 has no time limit");
}

// The reason of a drain is untrusted text.
TEST_F(ReasonText, LeavesBracesInForeignText) {
  EXPECT_EQ(reason_text({ReasonCode::kOutOfService, "GPU 0 is draining: {time}"}, now_),
            "GPU 0 is draining: {time}");
}

}  // namespace
}  // namespace gpurota
