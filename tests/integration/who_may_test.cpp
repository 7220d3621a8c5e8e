// Who may what, through the control socket: limits, administrators, reloads.
#include "running_daemon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::testing {
namespace {

using ::testing::HasSubstr;

TEST(WhoMay, ARequestBeyondTheAllowanceIsRefusedWithLimitHeldAndAsked) {
  config::Config config = RunningDaemon::quick();
  config.limits.everyone.memory = gib(10);
  RunningDaemon daemon(config);
  const auto first = daemon.keep_slice(gib(8));
  const auto refused = daemon.call(proto::Acquire{.memory = SizeSpec{gib(4), 0}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kLimit);
  EXPECT_THAT(refused.error().message,
              HasSubstr("allows you 10 GiB of GPU memory; you have 8 GiB and ask for 4 GiB"));
  EXPECT_EQ(daemon.call(proto::Status{})->leases.size(), 1u);
}

TEST(WhoMay, AReloadHoldsForWhatIsAskedFromThenOn) {
  RunningDaemon daemon;
  const auto first = daemon.keep_slice(gib(8));
  daemon.set_config_text("[limits]\nmemory = \"8G\"\n");
  ASSERT_TRUE(daemon.call(proto::Reload{}));
  EXPECT_TRUE(eventually([&] {
    const auto again = daemon.call(proto::Acquire{.memory = SizeSpec{gib(1), 0}});
    return !again && again.error().code == Code::kLimit;
  }));
  EXPECT_EQ(daemon.call(proto::Status{})->leases.size(), 1u) << "what there is stays";
}

TEST(WhoMay, ABadFileIsRefusedWholeAndTheOldOneHolds) {
  config::Config config = RunningDaemon::quick();
  config.limits.everyone.memory = gib(4);
  RunningDaemon daemon(config);
  daemon.set_config_text("privacy = \"open\"\n[limits]\nmemory = \"100G\"\ngpus = -3\n");
  const auto reloaded = daemon.call(proto::Reload{});
  ASSERT_FALSE(reloaded);
  EXPECT_EQ(reloaded.error().code, Code::kInvalid);
  EXPECT_THAT(reloaded.error().message, HasSubstr(":4: limits.gpus: write a whole number"));
  EXPECT_EQ(daemon.call(proto::Acquire{.memory = SizeSpec{gib(5), 0}}).error().code, Code::kLimit);
}

}  // namespace
}  // namespace gpurota::testing
