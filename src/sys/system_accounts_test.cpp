#include "sys/system_accounts.h"

#include <gtest/gtest.h>

namespace gpurota::sys {
namespace {

TEST(SystemAccounts, FindsRootByNameAndAnyUserByNumber) {
  SystemAccounts accounts;
  EXPECT_EQ(*accounts.read_uid("root"), 0u);
  EXPECT_EQ(*accounts.read_gid("root"), 0u);
  EXPECT_EQ(*accounts.read_uid("4711"), 4711u);
  EXPECT_EQ(*accounts.read_gid("4711"), 4711u);
}

TEST(SystemAccounts, AnAccountThatDoesNotExistIsNotFound) {
  SystemAccounts accounts;
  EXPECT_EQ(accounts.read_uid("no such user").error().code, Code::kNotFound);
  EXPECT_EQ(accounts.read_gid("no such group\x1b").error().code, Code::kNotFound);
  EXPECT_EQ(accounts.read_uid("-1").error().code, Code::kNotFound);
  EXPECT_EQ(accounts.read_uid("").error().code, Code::kNotFound);
  EXPECT_EQ(accounts.read_account(4294967290u).error().code, Code::kNotFound);
}

TEST(SystemAccounts, TheGroupsOfAUserBeginWithThePrimaryOne) {
  const auto account = SystemAccounts().read_account(0);
  ASSERT_TRUE(account) << account.error().message;
  EXPECT_EQ(account->name, "root");
  EXPECT_EQ(account->groups.at(0).gid, 0u);
  EXPECT_EQ(account->groups.at(0).name, "root");
}

}  // namespace
}  // namespace gpurota::sys
