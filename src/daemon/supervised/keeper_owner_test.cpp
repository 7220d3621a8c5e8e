#include "daemon/supervised/keeper_owner.h"

#include "daemon/gpus/fake_world_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

using ::testing::HasSubstr;

using KeeperOwnerTest = FakeWorldTest;

TEST_F(KeeperOwnerTest, RootRunsCommandsOfWhoeverHasAnAccount) {
  processes.set_user(1000, "alice");
  EXPECT_TRUE(check_keeper_owner(processes, 0, 1000, "job"));
}

TEST_F(KeeperOwnerTest, RootTakesNoCommandWhileItsOwnersNameIsNotKnown) {
  const auto refused = check_keeper_owner(processes, 0, 1000, "filler");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnavailable);
  EXPECT_THAT(refused.error().message,
              HasSubstr("there is no account with uid 1000, so no filler"));
  processes.set_user(1000, "alice");
  EXPECT_TRUE(check_keeper_owner(processes, 0, 1000, "filler")) << "the directory has answered";
}

TEST_F(KeeperOwnerTest, AnotherDaemonRunsThoseOfItsOwnUserWhoNeedsNoAccount) {
  EXPECT_TRUE(check_keeper_owner(processes, 1000, 1000, "job"));
  const auto refused = check_keeper_owner(processes, 1000, 1001, "job");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kDenied);
  EXPECT_THAT(refused.error().message, HasSubstr("runs as uid 1000 and cannot run a job"));
  EXPECT_FALSE(check_keeper_owner(processes, 1000, 0, "job")) << "not even root's";
}

}  // namespace
}  // namespace gpurota::daemon
