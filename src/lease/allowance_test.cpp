#include "lease/allowance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::lease {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kWeek = 168h;

Error refusal_of(const UserLimits& limits, const Holding& held, const Asking& asked) {
  const auto result = check_allowance(limits, held, asked, kWeek);
  return result ? Error{} : result.error();
}

bool fits(const UserLimits& limits, const Holding& held, const Asking& asked) {
  return check_allowance(limits, held, asked, kWeek).has_value();
}

TEST(Allowance, WithoutRulesOnlyWaitingRequestsAndBookingsAreLimited) {
  const UserLimits limits = limits_of({}, 1000, {});
  EXPECT_TRUE(fits(limits, {1000000, gib(1000000), 63, 999999h, {}}, {16, gib(1280), true, {}}));
  EXPECT_THAT(refusal_of(limits, {0, {}, 64, 0s, {}}, {1, {}, true, {}}).message,
              HasSubstr("64 waiting requests"));
}

TEST(Allowance, RefusalNamesLimitHoldingAndRequest) {
  UserLimits limits = default_limits();
  limits.gpus = 2;
  const Error error = refusal_of(limits, {1, {}, 0, 0s, {}}, {2, {}, false, {}});
  EXPECT_EQ(error.code, Code::kLimit);
  EXPECT_THAT(error.message, HasSubstr("allows you 2 GPUs; you have 1 and ask for 2"));
  EXPECT_TRUE(fits(limits, {1, {}, 0, 0s, {}}, {1, {}, false, {}}));
  EXPECT_FALSE(fits(limits, {1, {}, 0, 0s, {}}, {INT_MAX, {}, false, {}}));
}

TEST(Allowance, MemoryIsCountedTogether) {
  UserLimits limits = default_limits();
  limits.memory = gib(40);
  EXPECT_TRUE(fits(limits, {2, gib(30), 0, 0s, {}}, {1, gib(10), false, {}}));
  EXPECT_THAT(refusal_of(limits, {2, gib(30), 0, 0s, {}}, {1, gib(11), false, {}}).message,
              HasSubstr("40 GiB of GPU memory; you have 30 GiB and ask for 11 GiB"));
  EXPECT_FALSE(fits(limits, {}, {1, Bytes(UINT64_MAX), false, {}}));
}

TEST(Allowance, ARequestThatDoesNotWaitIgnoresTheQueueLimit) {
  UserLimits limits = default_limits();
  limits.waiting = 0;
  EXPECT_TRUE(fits(limits, {}, {1, {}, false, {}}));
  EXPECT_FALSE(fits(limits, {}, {1, {}, true, {}}));
}

TEST(Allowance, LeaseWithoutAnEndCannotBypassTheLongestDuration) {
  UserLimits limits = default_limits();
  limits.duration = 4h;
  EXPECT_TRUE(fits(limits, {}, {1, {}, false, 4h}));
  EXPECT_THAT(refusal_of(limits, {}, {1, {}, false, 5h}).message, HasSubstr("5 h were asked for"));
  EXPECT_THAT(refusal_of(limits, {}, {1, {}, false, {}}).message, HasSubstr("has no end"));
}

TEST(Allowance, HoursIncludeTheRequestedTimeIfKnown) {
  UserLimits limits = default_limits();
  limits.hours = 100;
  const Holding used{0, {}, 0, 90h, {}};
  EXPECT_TRUE(fits(limits, used, {2, {}, false, 5h}));
  EXPECT_THAT(refusal_of(limits, used, {2, {}, false, 6h}).message,
              HasSubstr("100 GPU hours in 7 days; you have used 90.0 and ask for 12.0"));
  EXPECT_TRUE(fits(limits, used, {8, {}, false, {}}));
  EXPECT_FALSE(fits(limits, {0, {}, 0, 100h, {}}, {1, {}, false, {}}));
  EXPECT_FALSE(fits(limits, used, {16, {}, false, UserLimits::kUnlimitedTime}));
}

TEST(Allowance, OnlyAnInteractiveRequestNeedsTheRightToOne) {
  EXPECT_TRUE(fits(default_limits(), {}, {.gpus = 1, .interactive = true}));
  ResolvedRules rules;
  rules.everyone.interactive = false;
  rules.groups[100].interactive = true;
  rules.groups[200].interactive = false;
  EXPECT_TRUE(*limits_of(rules, 1000, {100, 200}).interactive) << "the most generous group";
  const UserLimits limits = limits_of(rules, 1000, {200});
  EXPECT_TRUE(fits(limits, {}, {.gpus = 1}));
  EXPECT_EQ(refusal_of(limits, {}, {.gpus = 1, .interactive = true}).message,
            "the site allows you no interactive leases ([limits] interactive): leave out "
            "--latency interactive, or ask your administrator");
}

TEST(Allowance, BoundsTheShareOfAGpusComputeTime) {
  EXPECT_TRUE(fits(default_limits(), {}, {.gpus = 1, .compute = 95}));
  UserLimits limits = default_limits();
  limits.compute = 50;
  EXPECT_TRUE(fits(limits, {}, {.gpus = 1, .compute = 50}));
  EXPECT_TRUE(fits(limits, {}, {.gpus = 1, .compute = 20, .compute_there = 30}));
  EXPECT_EQ(refusal_of(limits, {}, {.gpus = 1, .compute = 40, .compute_there = 30}).message,
            "the site allows you 50 % of a GPU's compute time ([limits] compute); you have 30 % "
            "there and ask for 40 %: write --compute 20%, or ask your administrator");
  limits.compute = 0;
  EXPECT_TRUE(fits(limits, {}, {.gpus = 1}));
  EXPECT_THAT(refusal_of(limits, {}, {.gpus = 1, .compute = 10}).message,
              HasSubstr("leave out --compute"));
}

TEST(Allowance, TheNarrowerRuleCountsFieldByField) {
  ResolvedRules rules;
  rules.everyone.gpus = 1;
  rules.everyone.memory = gib(10);
  rules.everyone.weight = 50;
  rules.groups[100].gpus = 2;
  rules.groups[200].gpus = 4;
  rules.groups[200].memory = gib(5);
  rules.users[1000].memory = UserLimits::kUnlimitedBytes;
  const UserLimits own = limits_of(rules, 1000, {100, 200});
  EXPECT_EQ(own.gpus, 4) << "the most generous of several groups";
  EXPECT_EQ(own.memory, UserLimits::kUnlimitedBytes);
  EXPECT_EQ(own.weight, 50);
  EXPECT_EQ(own.waiting, default_limits().waiting);
  const UserLimits member = limits_of(rules, 1001, {100});
  EXPECT_EQ(member.gpus, 2);
  EXPECT_EQ(member.memory, gib(10));
  EXPECT_EQ(limits_of(rules, 1001, {200}).memory, gib(5)) << "a group may have less than everyone";
  EXPECT_EQ(limits_of(rules, 1001, {}).gpus, 1);
}

TEST(Allowance, BookingsAreLimitedInNumberAndHowFarAheadTheyBegin) {
  const UserLimits limits = default_limits();
  EXPECT_TRUE(check_booking(limits, {0, 4, 28 * 24h}));
  const auto many = check_booking(limits, {3, 2, 24h});
  ASSERT_FALSE(many);
  EXPECT_EQ(
      many.error().message,
      "the site allows you 4 bookings; you have 3 and ask for 2: cancel one, ask for fewer, or "
      "ask your administrator");
  const auto far = check_booking(limits, {0, 1, 28 * 24h + 1s});
  ASSERT_FALSE(far);
  EXPECT_EQ(far.error().message,
            "the site allows you to book 28 days ahead, and this begins later: ask for an earlier "
            "time, or ask your administrator");
}

TEST(Allowance, TimesReadAsPeopleWriteThem) {
  EXPECT_EQ(duration_text(45s), "45 s");
  EXPECT_EQ(duration_text(90min), "90 min");
  EXPECT_EQ(duration_text(24h), "24 h");
  EXPECT_EQ(duration_text(168h), "7 days");
}

TEST(Origins, NameTheRuleThatCounts) {
  using Rule = LimitOrigin::Rule;
  ResolvedRules rules;
  rules.everyone.duration = std::chrono::hours(8);
  rules.everyone.gpus = 1;
  rules.groups[10].gpus = 2;
  rules.groups[11].gpus = 4;
  rules.groups[12].gpus = 8;
  rules.users[1000].memory = gib(10);
  const LimitOrigins origins = origins_of(rules, 1000, {10, 11});
  EXPECT_EQ(origins.gpus, (LimitOrigin{Rule::kGroup, 11})) << "the most generous of theirs";
  EXPECT_EQ(origins.memory, (LimitOrigin{Rule::kUser}));
  EXPECT_EQ(origins.duration, (LimitOrigin{Rule::kEveryone}));
  EXPECT_EQ(origins.hours, (LimitOrigin{Rule::kDefault}));
  EXPECT_EQ(origins_of(rules, 1001, {}).gpus, (LimitOrigin{Rule::kEveryone}));
}

}  // namespace
}  // namespace gpurota::lease
