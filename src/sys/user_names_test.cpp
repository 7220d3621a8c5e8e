#include "sys/user_names.h"

#include "testing/fake_accounts.h"
#include "testing/fake_event_loop.h"

#include <gtest/gtest.h>

namespace gpurota::sys {
namespace {

TEST(UserNames, FirstQuestionWaitsForTheName) {
  testing::FakeEventLoop loop;
  const auto accounts = std::make_shared<testing::FakeAccounts>();
  accounts->add_user("alice", 1000, {});
  accounts->add_user("bob", 1001, {});
  UserNames names(loop, accounts);
  EXPECT_EQ(names.name_of(1000), "alice");
  EXPECT_EQ(names.name_of(1001), "bob") << "the second of one turn of the loop too";
  EXPECT_EQ(names.name_of(1002), "1002") << "there is no such user";
  EXPECT_EQ(accounts->lookups(), 3);
}

TEST(UserNames, OldNameIsUsedWhileItIsReadAgain) {
  testing::FakeEventLoop loop;
  const auto accounts = std::make_shared<testing::FakeAccounts>();
  accounts->add_user("alice", 1000, {});
  UserNames names(loop, accounts);
  EXPECT_EQ(names.name_of(1000), "alice");
  accounts->add_user("alicia", 1000, {});
  EXPECT_EQ(names.name_of(1000), "alice");
  EXPECT_EQ(accounts->lookups(), 1);
  loop.advance(UserNames::kFresh);
  names.name_of(1000);
  EXPECT_TRUE(loop.run_until([&] { return names.name_of(1000) == "alicia"; }));
}

TEST(UserNames, HangingServiceDoesNotBlockTheStateThread) {
  testing::FakeEventLoop loop;
  const auto accounts = std::make_shared<testing::FakeAccounts>();
  for (uid_t uid = 1; uid <= 1000; ++uid) {
    accounts->add_user("user" + std::to_string(uid), uid, {});
  }
  accounts->block();
  UserNames names(loop, accounts);
  for (uid_t uid = 1; uid <= 1000; ++uid) EXPECT_EQ(names.name_of(uid), std::to_string(uid));
  loop.advance(UserNames::kFresh);
  for (uid_t uid = 1; uid <= 1000; ++uid) EXPECT_EQ(names.name_of(uid), std::to_string(uid));
  accounts->unblock();
  EXPECT_TRUE(loop.run_until([&] { return names.name_of(1000) == "user1000"; }));
  EXPECT_EQ(names.name_of(1), "user1");
  EXPECT_LE(accounts->lookups(), 1002) << "nobody was asked for twice while it hung";
}

}  // namespace
}  // namespace gpurota::sys
