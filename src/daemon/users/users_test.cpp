#include "daemon/users/users.h"

#include "base/log.h"
#include "testing/fake_accounts.h"
#include "testing/fake_event_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;

constexpr uid_t kAlice = 1000;
constexpr gid_t kAdmins = 50, kStudents = 60;

class UsersTest : public ::testing::Test {
 protected:
  UsersTest() {
    accounts.add_user("alice", kAlice, {kAlice, kStudents});
    accounts.add_group("admins", kAdmins);
    accounts.add_group("students", kStudents);
    config.admin_group = "admins";
    config.limits.groups["students"].gpus = 1;
  }
  void answered(Users& users) {
    ASSERT_TRUE(loop.run_until([&] { return users.limits_of(kAlice).gpus == 1; }));
  }

  testing::FakeEventLoop loop;
  const std::shared_ptr<testing::FakeAccounts> database = std::make_shared<testing::FakeAccounts>();
  testing::FakeAccounts& accounts = *database;
  config::Config config;
};

TEST_F(UsersTest, RootAndTheDaemonsUserAdminister) {
  Users users(loop, database, config, 4711);
  users.resolve(1min);
  EXPECT_TRUE(users.is_administrator(0));
  EXPECT_TRUE(users.is_administrator(4711));
  EXPECT_FALSE(users.is_administrator(kAlice));
}

TEST_F(UsersTest, MembersOfTheGroupAdministerFromTheirFirstCallOn) {
  Users users(loop, database, config, 4711);
  users.resolve(1min);
  users.greet(kAlice, {kAdmins});
  EXPECT_TRUE(users.is_administrator(kAlice)) << "the kernel's groups until the database answers";
}

TEST_F(UsersTest, AccountDatabaseOverridesTheKernelsGroups) {
  Users users(loop, database, config, 4711);
  users.resolve(1min);
  users.greet(kAlice, {kAdmins});
  answered(users);
  EXPECT_FALSE(users.is_administrator(kAlice));
}

TEST_F(UsersTest, UsersAreNotLookedUpAgainBeforeTheirExpiry) {
  Users users(loop, database, config, 4711);
  users.resolve(1min);
  for (int i = 0; i < 100; ++i) users.greet(kAlice, {});
  answered(users);
  for (int i = 0; i < 100; ++i) users.greet(kAlice, {});
  EXPECT_EQ(accounts.lookups(), 1);
  accounts.add_user("alice", kAlice, {kAlice, kAdmins});
  loop.advance(Users::kFresh);
  users.greet(kAlice, {});
  EXPECT_EQ(users.limits_of(kAlice).gpus, 1) << "what is known holds until the answer is there";
  EXPECT_TRUE(loop.run_until([&] { return users.is_administrator(kAlice); }));
}

TEST_F(UsersTest, AUserWithoutAnAccountKeepsTheKernelsGroups) {
  Users users(loop, database, config, 4711);
  users.resolve(1min);
  users.greet(2000, {kAdmins});
  ASSERT_TRUE(loop.run_until([&] { return accounts.lookups() == 1; }));
  loop.run_until_idle();
  EXPECT_TRUE(users.is_administrator(2000));
}

TEST_F(UsersTest, GroupsHaveNamesAsSoonAsTheDatabaseHasAnswered) {
  Users users(loop, database, config, 4711);
  EXPECT_EQ(users.group_names(kAlice), std::nullopt) << "and asks, although alice never connected";
  EXPECT_TRUE(loop.run_until([&] { return users.group_names(kAlice).has_value(); }));
  EXPECT_THAT(*users.group_names(kAlice), ::testing::ElementsAre("1000", "students"));
  EXPECT_EQ(accounts.lookups(), 1);
  EXPECT_TRUE(loop.run_until([&] { return users.group_names(2000).has_value(); }));
  EXPECT_THAT(*users.group_names(2000), ::testing::IsEmpty()) << "there is no such account";
}

TEST_F(UsersTest, UsersAreRemovedFromTheCacheEventually) {
  Users users(loop, nullptr, config, 4711);
  users.resolve(1min);
  for (uid_t uid = 1; uid <= Users::kMostUsers + 100; ++uid) users.greet(uid, {kStudents});
  EXPECT_EQ(users.known_users(), Users::kMostUsers);
}

TEST_F(UsersTest, UnknownNameAppliesToNobodyAndIsReported) {
  config.limits.users["nobody-of-that-name"].gpus = 0;
  std::string logged;
  log::set_sink([&](log::Level, const std::string& line, const log::Fields&) { logged += line; });
  Users users(loop, database, config, 4711);
  users.resolve(1min);
  log::set_sink({});
  EXPECT_THAT(logged, ::testing::HasSubstr("nobody-of-that-name"));
  EXPECT_EQ(users.limits_of(kAlice).gpus, UserLimits::kUnlimited);
}

TEST_F(UsersTest, GroupOfTheSocketsIsResolvedOrReportedWithTheRemedy) {
  Users users(loop, database, config, 4711);
  users.resolve(1min);
  EXPECT_FALSE(users.socket_group()) << "none is configured";
  config.group = "students";
  users.resolve(1min);
  EXPECT_EQ(users.socket_group()->value(), kStudents);
  config.group = "study";
  users.resolve(1min);
  EXPECT_THAT(users.socket_group()->error().message, ::testing::HasSubstr("groupadd"));
}

TEST_F(UsersTest, HangingUserDatabaseDelaysNoLongerThanItsTimeout) {
  accounts.block();
  config.limits.everyone.gpus = 2;
  config.group = "students";
  config.automatic.users = {"alice", "@students"};
  int late = 0;
  Users users(loop, database, config, 4711, [&] { ++late; });
  EXPECT_FALSE(users.resolve(1ms));
  users.greet(kAlice, {kAdmins});
  EXPECT_FALSE(users.is_administrator(kAlice)) << "whoever they are";
  EXPECT_EQ(users.limits_of(kAlice).gpus, 2) << "what holds for everyone names nobody";
  EXPECT_THAT(users.automatic_groups(), ::testing::IsEmpty());
  EXPECT_FALSE(users.socket_group());
  accounts.unblock();
  answered(users);
  EXPECT_THAT(users.automatic_groups(), ::testing::ElementsAre(kStudents));
  EXPECT_EQ(late, 1);
  EXPECT_TRUE(users.resolve(1min));
  EXPECT_EQ(late, 1) << "whoever waits need not be told";
}

TEST_F(UsersTest, UnknownNameIsReportedAtOnceUnlessTheDatabaseHangs) {
  Users users(loop, database, config, 4711);
  EXPECT_TRUE(users.may_exist("alice"));
  EXPECT_FALSE(users.may_exist("alicia"));
  accounts.block();
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(users.may_exist("alicia")) << "nobody knows";
  accounts.unblock();
  EXPECT_TRUE(loop.run_until([&] { return !users.may_exist("alicia"); }));
}

// The second resolve() gets its answer while it waits, before the loop delivers the answer to the
// first one.
TEST_F(UsersTest, AnOlderAnswerDoesNotReplaceThatForANewerConfiguration) {
  Users users(loop, database, config, 4711);
  accounts.block();
  EXPECT_FALSE(users.resolve(1ms));
  config.admin_group = "students";
  accounts.unblock();
  EXPECT_TRUE(users.resolve(1min));
  loop.run_until_idle();
  users.greet(kAlice, {kAdmins});
  EXPECT_FALSE(users.is_administrator(kAlice));
}

TEST_F(UsersTest, ReloadTakesEffectOnceItsNamesAreKnown) {
  Users users(loop, database, config, 4711);
  users.resolve(1min);
  users.greet(kAlice, {});
  answered(users);
  config.limits.groups["students"].gpus = 3;
  users.resolve(0ms);
  EXPECT_TRUE(loop.run_until([&] { return users.limits_of(kAlice).gpus == 3; }));
}

}  // namespace
}  // namespace gpurota::daemon
