#include "sys/system_accounts.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <grp.h>
#include <unistd.h>

namespace gpurota::sys {
namespace {

TEST(SystemAccounts, KnowsRootByNameAndAnybodyByNumber) {
  SystemAccounts accounts;
  EXPECT_EQ(*accounts.read_uid("root"), 0u);
  EXPECT_EQ(*accounts.read_gid("root"), 0u);
  EXPECT_EQ(*accounts.read_uid("4711"), 4711u);
  EXPECT_EQ(*accounts.read_gid("4711"), 4711u);
}

TEST(SystemAccounts, WhoDoesNotExistIsNotFound) {
  SystemAccounts accounts;
  EXPECT_EQ(accounts.read_uid("no such user").error().code, Code::kNotFound);
  EXPECT_EQ(accounts.read_gid("no such group\x1b").error().code, Code::kNotFound);
  EXPECT_EQ(accounts.read_uid("-1").error().code, Code::kNotFound);
  EXPECT_EQ(accounts.read_uid("").error().code, Code::kNotFound);
  EXPECT_EQ(accounts.read_groups(4294967290u).error().code, Code::kNotFound);
}

TEST(SystemAccounts, TheGroupsOfAUserHoldThePrimaryOne) {
  const auto groups = SystemAccounts().read_groups(0);
  ASSERT_TRUE(groups) << groups.error().message;
  EXPECT_NE(std::find(groups->begin(), groups->end(), 0u), groups->end());
}

}  // namespace
}  // namespace gpurota::sys
