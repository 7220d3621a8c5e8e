#include "daemon/users/user_budgets.h"

#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

constexpr uid_t kAlice = 1000, kMallory = 1001, kDaemon = 500;
constexpr std::uint64_t kTable = 800;

class UserBudgetsTest : public ::testing::Test {
 protected:
  // Takes as many as the user may have, and returns their number.
  std::uint64_t fill(uid_t user, Budget budget) {
    std::uint64_t count = 0;
    for (; auto held = budgets.take(user, budget); ++count) all.push_back(std::move(*held));
    return count;
  }

  config::Config config;
  std::vector<UserBudgets::Held> all;
  std::optional<uid_t> holder;
  TimePoint now{std::chrono::hours(1)};
  UserBudgets budgets{{config, kTable, kDaemon, [this](uid_t uid) { return holder == uid; },
                       [this] { return now; }}};
};

TEST_F(UserBudgetsTest, UserWhoFillsTheTableIsRefused) {
  const std::uint64_t filled = fill(kMallory, Budget::kDescriptors);
  EXPECT_EQ(filled, kTable * 6 / 8 / 2);
  const auto one_more = budgets.take(kMallory, Budget::kDescriptors);
  ASSERT_FALSE(one_more);
  EXPECT_EQ(one_more.error().code, Code::kLimit);
  EXPECT_NE(one_more.error().message.find("user 1001 hold 300 of gpurotad's 800 descriptors"),
            std::string::npos)
      << one_more.error().message;
  EXPECT_GT(fill(kAlice, Budget::kDescriptors), kTable / 8);
}

TEST_F(UserBudgetsTest, ManyUsersTogetherLeaveSomeToHoldersAndTheLastToRoot) {
  for (uid_t user = 2000; user < 2400; ++user) fill(user, Budget::kDescriptors);
  EXPECT_FALSE(budgets.take(kAlice, Budget::kDescriptors));
  holder = kAlice;
  EXPECT_GE(fill(kAlice, Budget::kDescriptors), kTable / 16 - 1);
  EXPECT_GE(fill(0, Budget::kDescriptors), kTable / 8);
}

TEST_F(UserBudgetsTest, DaemonsOwnUserMayHaveAllDescriptors) {
  EXPECT_EQ(fill(kDaemon, Budget::kDescriptors), kTable);
}

TEST_F(UserBudgetsTest, NewLeasesMayComeInABurstAndThenAtTheHourlyRate) {
  config.max_new_leases_per_hour = 360;
  const auto spend = [&](uid_t user) {
    int count = 0;
    while (count < 1000 && budgets.spend_lease(user)) ++count;
    return count;
  };
  EXPECT_EQ(spend(kMallory), 360);
  EXPECT_EQ(budgets.used(kMallory, Budget::kNewLeases), 360u);
  EXPECT_EQ(budgets.first(Budget::kNewLeases), kMallory);
  const auto refused = budgets.spend_lease(kMallory);
  EXPECT_EQ(refused.error().code, Code::kLimit);
  EXPECT_NE(refused.error().message.find("wait 10 s"), std::string::npos)
      << refused.error().message;
  EXPECT_EQ(spend(kAlice), 360) << "others have their own";
  EXPECT_EQ(spend(0), 1000);
  EXPECT_EQ(spend(kDaemon), 1000);
  now += std::chrono::seconds(100);
  EXPECT_EQ(spend(kMallory), 10);
  now += std::chrono::hours(5);
  EXPECT_EQ(budgets.used(kMallory, Budget::kNewLeases), 0u);
  EXPECT_EQ(spend(kMallory), 360) << "what was not used is not saved up";
}

TEST_F(UserBudgetsTest, ReleasedBudgetIsAvailableAgain) {
  config.max_tenants_per_user = 3;
  EXPECT_EQ(fill(kAlice, Budget::kTenants), 3u);
  EXPECT_EQ(fill(kMallory, Budget::kTenants), 3u);
  all.erase(all.begin());
  EXPECT_TRUE(budgets.take(kAlice, Budget::kTenants));
  all.clear();
  EXPECT_EQ(budgets.used(kAlice, Budget::kTenants), 0u);
  EXPECT_FALSE(budgets.first(Budget::kTenants));
}

TEST_F(UserBudgetsTest, ExistingUseIsCountedButNotRefused) {
  config.max_tenants_per_user = 3;
  fill(kAlice, Budget::kTenants);
  all.push_back(budgets.charge(kAlice, Budget::kTenants, 2));
  EXPECT_EQ(budgets.used(kAlice, Budget::kTenants), 5u);
  EXPECT_EQ(budgets.first(Budget::kTenants), kAlice);
  EXPECT_FALSE(budgets.take(kAlice, Budget::kTenants));
}

}  // namespace
}  // namespace gpurota::daemon
