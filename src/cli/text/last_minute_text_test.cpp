#include "cli/text/last_minute_text.h"

#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

proto::Lease a_lease(int held, std::optional<int> got = std::nullopt, std::int64_t seconds = 60) {
  proto::Lease lease;
  lease.last_minute.emplace();
  lease.last_minute->seconds = seconds;
  lease.last_minute->held_percent = held;
  lease.last_minute->got_percent = got;
  return lease;
}

TEST(LastMinuteText, SaysForWhomWorkWasHeldBack) {
  proto::Lease lease = a_lease(34);
  EXPECT_EQ(held_back_text(lease), "34 % of the last minute");
  EXPECT_EQ(short_held_text(lease), "held back 34%");
  lease.last_minute->held_for = {{LeaseId{3}, 34, proto::LatencyClass::kInteractive}};
  EXPECT_EQ(held_back_text(lease), "34 % of the last minute, for L3 (interactive)");
  EXPECT_EQ(short_held_text(lease), "held back 34% for L3");
  lease.last_minute->held_for = {{LeaseId{3}, 20, proto::LatencyClass::kInteractive},
                                 {LeaseId{4}, 14, proto::LatencyClass::kNormal}};
  EXPECT_EQ(held_back_text(lease), "34 % of the last minute, for L3 (interactive) 20 %, L4 14 %");
  EXPECT_EQ(short_held_text(lease), "held back 34% for L3, L4");
}

TEST(LastMinuteText, SaysNothingIfNothingWasHeldBack) {
  EXPECT_EQ(held_back_text({}), "");
  EXPECT_EQ(short_held_text({}), "");
  EXPECT_EQ(held_back_text(a_lease(0)), "");
  EXPECT_EQ(short_held_text(a_lease(9)), "");
}

TEST(LastMinuteText, SaysHowMuchTheLeaseGotAndWhetherItWantsMore) {
  EXPECT_EQ(got_text({}), "");
  EXPECT_EQ(got_text(a_lease(34)), "");
  EXPECT_EQ(got_text(a_lease(69, 31)), "31 % in the last minute, and wants more");
  EXPECT_EQ(got_text(a_lease(0, 12, 20)), "12 % in the last 20 s");
  proto::Lease lease = a_lease(0, 50);
  EXPECT_EQ(bounded_text(lease), "");
  lease.last_minute->bounded_percent = 0;
  EXPECT_EQ(bounded_text(lease), "");
  lease.last_minute->bounded_percent = 48;
  EXPECT_EQ(bounded_text(lease), "48 % of the last minute");
  EXPECT_EQ(got_text(lease), "50 % in the last minute, and wants more");
}

}  // namespace
}  // namespace gpurota::cli
