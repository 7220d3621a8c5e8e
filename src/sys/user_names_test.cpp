#include "sys/user_names.h"

#include "testing/fake_accounts.h"
#include "testing/fake_event_loop.h"

#include <gtest/gtest.h>

#include <future>

namespace gpurota::sys {
namespace {

// Accounts whose service hangs until it is let go.
class HangingAccounts final : public ports::Accounts {
 public:
  Result<uid_t> read_uid(const std::string&) override { return fail(Code::kNotFound, ""); }
  Result<gid_t> read_gid(const std::string&) override { return fail(Code::kNotFound, ""); }
  Result<ports::Account> read_account(uid_t uid) override {
    gone_on_.wait();
    return ports::Account{"user" + std::to_string(uid), {}};
  }
  void let_go() { let_go_.set_value(); }

 private:
  std::promise<void> let_go_;
  std::shared_future<void> gone_on_ = let_go_.get_future();
};

TEST(UserNames, AreThereAtTheFirstQuestion) {
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

TEST(UserNames, AreReadAgainWhenTheyAreOldWhileTheOldOneHolds) {
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

TEST(UserNames, AServiceThatHangsDoesNotHoldTheStateThread) {
  testing::FakeEventLoop loop;
  const auto accounts = std::make_shared<HangingAccounts>();
  UserNames names(loop, accounts);
  for (uid_t uid = 1; uid <= 1000; ++uid) EXPECT_EQ(names.name_of(uid), std::to_string(uid));
  accounts->let_go();
  EXPECT_TRUE(loop.run_until([&] { return names.name_of(1000) == "user1000"; }));
  EXPECT_EQ(names.name_of(1), "user1");
}

}  // namespace
}  // namespace gpurota::sys
