#include "daemon/tenants/held_back.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace gpurota::daemon {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

Lease lease_with(int share) {
  Lease lease;
  lease.id = LeaseId{2};
  lease.gpus.emplace_back().compute.least = share;
  return lease;
}

LastMinute minute(int known, int held, std::optional<int> got = std::nullopt) {
  LastMinute last;
  last.known = seconds(known);
  last.held = seconds(held);
  if (held > 0) last.held_for[LeaseId{3}] = last.held;
  if (got) last.got = seconds(*got);
  return last;
}

TEST(HeldBackText, SaysForWhomWorkWasHeldBackForLong) {
  EXPECT_EQ(held_back_text(lease_with(0), "0", minute(60, 42), std::nullopt),
            "work of L2 was held back for 70 % of the last minute, because interactive leases had "
            "work: L3");
  EXPECT_EQ(held_back_text(lease_with(0), "0", minute(60, 20), std::nullopt), "");
  EXPECT_EQ(held_back_text(lease_with(0), "0", minute(50, 50), std::nullopt), "")
      << "not known of a whole minute";
}

TEST(HeldBackText, SaysThatALeaseGotMuchLessThanItsShare) {
  EXPECT_THAT(held_back_text(lease_with(40), "0", std::nullopt, minute(60, 40, 12)),
              HasSubstr("L2 got 20 % of the compute time of GPU 0 in the last minute and wanted "
                        "more, but was promised 40 %"));
  EXPECT_EQ(held_back_text(lease_with(40), "0", std::nullopt, minute(60, 36, 24)), "");
  EXPECT_EQ(held_back_text(lease_with(40), "0", std::nullopt, minute(60, 5, 12)), "")
      << "it did not want more";
  EXPECT_EQ(held_back_text(lease_with(0), "0", std::nullopt, minute(60, 50, 1)), "")
      << "nothing was promised";
}

}  // namespace
}  // namespace gpurota::daemon
