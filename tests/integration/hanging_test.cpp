// The driver and the account database may hang. The daemon serves only after both have answered
// once; from then on neither can block it.
#include "running_daemon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::testing {
namespace {

using ::testing::HasSubstr;

class HangingTest : public ::testing::Test {
 protected:
  explicit HangingTest(const config::Config& config = RunningDaemon::quick()) : daemon(config) {
    daemon.stop();
    daemon.patience = std::chrono::milliseconds(20);
  }
  // Releases the driver and the account database, so that the daemon's threads end.
  ~HangingTest() override {
    daemon.probe.unblock();
    daemon.accounts.unblock();
  }
  bool sees_gpus() { return !daemon.call(proto::Status{})->gpus.empty(); }

  RunningDaemon daemon;
};

TEST_F(HangingTest, NobodyIsServedBeforeTheDriverHasAnswered) {
  daemon.probe.block_driver();
  const auto refused = daemon.try_start();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("does not answer"));
  daemon.probe.unblock();
  daemon.patience = std::chrono::seconds(30);
  daemon.start();
  EXPECT_TRUE(sees_gpus());
}

TEST_F(HangingTest, HangingDriverSearchDelaysNobody) {
  daemon.probe.set_failure(Error{Code::kUnavailable, 0, "no driver"});
  daemon.start();
  // On a busy machine the answer may come late.
  EXPECT_TRUE(
      eventually([&] { return daemon.call(proto::Health{})->driver_error == "no driver"; }));
  daemon.probe.block_driver();
  daemon.probe.clear_failure();
  EXPECT_TRUE(eventually([&] {
    return daemon.call(proto::Health{})->driver_error->find("does not answer") != std::string::npos;
  }));
  daemon.probe.unblock();
  EXPECT_TRUE(eventually([&] { return sees_gpus(); }));
}

class HangingAccountsTest : public HangingTest {
 protected:
  static config::Config with_names() {
    config::Config config = RunningDaemon::quick();
    config.admin_group = "admins";
    config.limits.users["somebody"].memory = gib(1);
    config.automatic.users = {"@staff"};
    return config;
  }
  HangingAccountsTest() : HangingTest(with_names()) {}
};

TEST_F(HangingAccountsTest, ServesNobodyBeforeAdministratorsAndLimitsAreKnown) {
  daemon.accounts.block();
  const auto refused = daemon.try_start();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("account database"));
}

TEST_F(HangingAccountsTest, ReloadDoesNotWaitAndOldNamesStayInEffectMeanwhile) {
  daemon.accounts.add_user("somebody", ::getuid(), {});
  daemon.start();
  const proto::Acquire request{{.memory = SizeSpec{gib(3), 0}}};
  EXPECT_EQ(daemon.call(request).error().code, Code::kLimit);
  daemon.accounts.block();
  daemon.set_config_text("[limits.user.somebody]\nmemory = \"4GiB\"\n");
  EXPECT_TRUE(daemon.call(proto::Reload{}));
  EXPECT_EQ(daemon.call(request).error().code, Code::kLimit);
  daemon.accounts.unblock();
  EXPECT_TRUE(eventually([&] { return daemon.call(request).has_value(); }));
}

}  // namespace
}  // namespace gpurota::testing
