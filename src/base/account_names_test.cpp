#include "base/account_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota {
namespace {

TEST(AccountNames, ANameOrANumberIsAnAccount) {
  EXPECT_EQ(read_uid("root").value(), 0u);
  EXPECT_EQ(read_uid("4711").value(), 4711u);
  EXPECT_EQ(read_gid("root").value(), 0u);
  EXPECT_EQ(read_uid("no-such-user-here").error().code, Code::kNotFound);
  EXPECT_EQ(read_gid("no-such-group-here").error().code, Code::kNotFound);
}

TEST(AccountNames, LocalNamesAreListed) {
  EXPECT_THAT(read_local_users(), testing::Contains("root"));
  EXPECT_THAT(read_local_groups(), testing::Contains("root"));
}

}  // namespace
}  // namespace gpurota
