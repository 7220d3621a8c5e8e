// What the daemon stands on may hang: the driver, and the account database. It serves nevertheless.
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
  // Whatever hangs is let go, so that the daemon's threads end.
  ~HangingTest() override {
    daemon.probe.unblock();
    daemon.accounts.unblock();
  }
  bool sees_gpus() { return !daemon.call(proto::Status{})->gpus.empty(); }

  RunningDaemon daemon;
};

TEST_F(HangingTest, ADriverThatHangsHoldsUpNobodyAndItsGpusComeWhenItAnswers) {
  daemon.probe.block_driver();
  daemon.start();
  EXPECT_FALSE(sees_gpus());
  const auto refused = daemon.call(proto::Acquire{.memory = SizeSpec{gib(4), 0}});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("does not answer"));
  EXPECT_THAT(daemon.call(proto::Health{})->driver_error.value_or(""),
              HasSubstr("does not answer"));
  daemon.probe.unblock();
  EXPECT_TRUE(eventually([&] { return sees_gpus(); }));
  EXPECT_TRUE(daemon.call(proto::Acquire{.memory = SizeSpec{gib(4), 0}}));
}

TEST_F(HangingTest, SoItIsWithOneThatWasNotThereAtFirst) {
  daemon.probe.set_failure(Error{Code::kUnavailable, 0, "no driver"});
  daemon.start();
  EXPECT_EQ(daemon.call(proto::Health{})->driver_error, "no driver");
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

TEST_F(HangingAccountsTest, AnAccountDatabaseThatHangsHoldsUpNeitherStartNorReloadNorUsers) {
  daemon.accounts.add_user("somebody", ::getuid(), {});
  daemon.accounts.block();
  daemon.start();
  EXPECT_TRUE(sees_gpus());
  daemon.set_config_text("[limits.user.somebody]\nmemory = \"2GiB\"\n");
  EXPECT_TRUE(daemon.call(proto::Reload{}));
  EXPECT_TRUE(daemon.call(proto::Acquire{.memory = SizeSpec{gib(4), 0}}))
      << "what holds for a name holds for nobody before it is known";
  daemon.accounts.unblock();
  EXPECT_TRUE(eventually([&] {
    const auto made = daemon.call(proto::Acquire{.memory = SizeSpec{gib(4), 0}});
    return !made && made.error().code == Code::kLimit;
  }));
}

}  // namespace
}  // namespace gpurota::testing
