#include "cli/site/limits_view.h"

#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

using Name = proto::UserLimitName;
using From = proto::LimitOrigin;

TEST(LimitsText, ShowsUseLimitAndTheSourceOfTheRule) {
  proto::GetLimits::Reply reply;
  reply.user = "alice";
  reply.window_seconds = 7 * 86400;
  reply.limits = {
      {.name = Name::kGpus, .most = 4, .used = 2, .origin = From::kGroup, .group_id = 1007},
      {.name = Name::kMemory,
       .most = std::int64_t{160} << 30,
       .used = std::int64_t{12} << 30,
       .origin = From::kUser},
      {.name = Name::kHours, .most = 100 * 3600, .used = 45000, .origin = From::kEveryone},
      {.name = Name::kDuration, .most = 12 * 3600, .origin = From::kEveryone},
      {.name = Name::kWaiting, .most = 64, .used = 0, .origin = From::kDefault},
      {.name = Name::kLeases, .most = 64, .used = 3, .origin = From::kSite},
      {.name = Name::kPinned, .origin = From::kDefault},
      {.name = Name::kInteractive, .most = 0, .origin = From::kEveryone},
      {.name = Name::kCompute, .most = 50, .origin = From::kUser},
      {.name = Name::kBookingLength, .most = 72 * 3600, .origin = From::kSite},
      {.name = Name::kBookedHours, .most = 42 * 3600, .used = 40 * 3600, .origin = From::kSite},
      {.name = Name::kAllBookedHours, .used = 5400, .origin = From::kSite},
      {.name = Name::kUnknown, .most = 1, .origin = From::kDefault}};
  const auto name = [](gid_t gid) { return gid == 1007 ? "students" : ""; };
  EXPECT_EQ(limits_text(reply, {}, name),
            "alice                      USED    LIMIT  FROM\n"
            "GPUs                          2        4  group students\n"
            "GPU memory               12 GiB  160 GiB  user alice\n"
            "GPU hours in 7 d           12.5      100  everyone\n"
            "time of a lease               -     12 h  everyone\n"
            "waiting requests              0       64  default\n"
            "leases and requests           3       64  max_leases_per_user\n"
            "pinned host memory            -     none\n"
            "interactive leases            -       no  everyone\n"
            "compute share of a GPU        -     50 %  user alice\n"
            "time of a booking             -      3 d  [bookings]\n"
            "booked GPU hours in 7 d      40       42  [bookings]\n"
            "the same of all users       1.5     none\n");
}

TEST(LimitsText, MarksExhaustedLimits) {
  proto::GetLimits::Reply reply;
  reply.user = "bob";
  reply.limits = {{.name = Name::kGpus, .most = 1, .used = 1, .origin = From::kUser}};
  EXPECT_NE(limits_text(reply, {.colour = true}, {}).find("\033[31m"), std::string::npos);
}

}  // namespace
}  // namespace gpurota::cli
