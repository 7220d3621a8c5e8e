#include "lease/limit_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::lease {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr TimePoint kStart{};
const GpuUuid kGpu{"GPU-0"};

LimitedLease holding(std::uint64_t id, Bytes charged, int priority = 0) {
  LimitedLease lease;
  lease.lease = LeaseId{id};
  lease.priority = priority;
  lease.limit = gib(8);
  lease.soft_limit = gib(4);
  lease.charged = charged;
  lease.granted = charged - mib(500);
  return lease;
}

LimitRules stopping() { return {true, 30s, false, 0s}; }

class LimitPolicyTest : public testing::Test {
 protected:
  std::vector<LimitAction> decide(const std::vector<LimitedLease>& leases, const LimitRules& rules,
                                  Duration after) {
    return policy.decide(kGpu, leases, rules, kStart + after);
  }
  // The lease that is stopped; 0: none.
  static std::uint64_t stopped(const std::vector<LimitAction>& actions) {
    for (const LimitAction& action : actions) {
      if (action.kind == LimitAction::Kind::kStop) return action.lease.value;
    }
    return 0;
  }
  LimitPolicy policy;
};

TEST_F(LimitPolicyTest, WarningIsSentOnceEachTimeALeaseExceedsItsLimit) {
  EXPECT_TRUE(decide({holding(1, gib(4))}, {}, 0s).empty());
  const auto first = decide({holding(1, gib(5))}, {}, 1s);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].kind, LimitAction::Kind::kWarn);
  EXPECT_THAT(first[0].message, HasSubstr("holds 5 GiB, above its soft limit of 4 GiB"));
  EXPECT_TRUE(decide({holding(1, gib(6))}, {}, 1h).empty());
  EXPECT_TRUE(decide({holding(1, gib(3))}, {}, 2h).empty());
  EXPECT_EQ(decide({holding(1, gib(5))}, {}, 3h).size(), 1u);
}

TEST_F(LimitPolicyTest, SmallExcessIsShownAsMoreThanTheLimit) {
  const auto first = decide({holding(1, gib(4) + mib(20))}, {}, 0s);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_THAT(first[0].message, HasSubstr("holds 4.02 GiB, above its soft limit of 4 GiB"));
}

TEST_F(LimitPolicyTest, StoppedLeaseIsNotified) {
  LimitedLease lease = holding(1, gib(5));
  lease.gives_way = true;
  const auto first = decide({lease}, {}, 0s);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_THAT(first[0].message, HasSubstr("others go first until it is below"));
}

TEST_F(LimitPolicyTest, SiteThatOnlyWarnsStopsNoLease) {
  decide({holding(1, gib(5))}, {}, 0s);
  EXPECT_EQ(stopped(decide({holding(1, gib(5))}, {}, 24h)), 0u);
}

TEST_F(LimitPolicyTest, LeaseAboveForTheWholeGracePeriodIsStopped) {
  EXPECT_THAT(decide({holding(1, gib(5))}, stopping(), 0s)[0].message, HasSubstr("ended in 30 s"));
  EXPECT_EQ(stopped(decide({holding(1, gib(5))}, stopping(), 29s)), 0u);
  decide({holding(1, gib(4))}, stopping(), 29s);  // it was below for a moment
  EXPECT_EQ(stopped(decide({holding(1, gib(5))}, stopping(), 31s)), 0u);
  const auto actions = decide({holding(1, gib(5))}, stopping(), 61s);
  EXPECT_EQ(stopped(actions), 1u);
  EXPECT_THAT(actions.back().message, HasSubstr("held 5 GiB for 30 s"));
}

TEST_F(LimitPolicyTest, TheLowestPriorityGoesFirstAndTheOthersWaitForItsMemory) {
  const std::vector<LimitedLease> leases = {holding(1, gib(5), 5), holding(2, gib(5), -1),
                                            holding(3, gib(5), 0)};
  decide(leases, stopping(), 0s);
  EXPECT_EQ(stopped(decide(leases, stopping(), 30s)), 2u);
  auto ending = leases;
  ending[1].ending = true;
  EXPECT_EQ(stopped(decide(ending, stopping(), 31s)), 0u);
  EXPECT_EQ(stopped(decide({leases[0], leases[2]}, stopping(), 32s)), 3u);
}

TEST_F(LimitPolicyTest, OfEqualPriorityTheNewestGoesFirst) {
  const std::vector<LimitedLease> leases = {holding(1, gib(5)), holding(7, gib(5)),
                                            holding(3, gib(5))};
  decide(leases, stopping(), 0s);
  EXPECT_EQ(stopped(decide(leases, stopping(), 30s)), 7u);
}

TEST_F(LimitPolicyTest, ALoweredLimitIsEnforcedAfterItsGraceWhereTheSiteSaysSo) {
  LimitedLease lease = holding(1, gib(6));
  lease.soft_limit.reset();
  const LimitRules rules{false, 0s, true, 60s};
  EXPECT_TRUE(decide({lease}, rules, 0s).empty());
  lease.limit = gib(4);
  const auto actions = decide({lease}, rules, 1s);
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_THAT(actions[0].message, HasSubstr("its limit was lowered to 4 GiB; it is ended in 60 s"));
  EXPECT_EQ(stopped(decide({lease}, rules, 60s)), 0u);
  EXPECT_EQ(stopped(decide({lease}, rules, 61s)), 1u);
}

TEST_F(LimitPolicyTest, ALeaseThatGivesBackTheExcessInTimeStays) {
  LimitedLease lease = holding(1, gib(6));
  lease.soft_limit.reset();
  const LimitRules rules{false, 0s, true, 60s};
  decide({lease}, rules, 0s);
  lease.limit = gib(4);
  decide({lease}, rules, 1s);
  lease.charged = lease.granted = gib(3);
  decide({lease}, rules, 2s);
  // Memory that the driver allocates by itself is left to the watch.
  lease.charged = gib(5);
  EXPECT_TRUE(decide({lease}, rules, 120s).empty());
}

TEST_F(LimitPolicyTest, ALimitLoweredBeforeTheDaemonsStartIsFoundByItsGrants) {
  LimitedLease lease = holding(1, gib(9));
  lease.soft_limit.reset();
  lease.granted = lease.limit;
  const LimitRules rules{false, 0s, true, 60s};
  EXPECT_EQ(decide({lease}, rules, 0s).size(), 1u);
  EXPECT_EQ(stopped(decide({lease}, rules, 60s)), 1u);
}

TEST_F(LimitPolicyTest, AnEndedLeaseIsForgotten) {
  decide({holding(1, gib(5))}, {}, 0s);
  policy.forget(LeaseId{1});
  EXPECT_EQ(decide({holding(1, gib(5))}, {}, 1s).size(), 1u);
}

}  // namespace
}  // namespace gpurota::lease
