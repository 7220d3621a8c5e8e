#include "daemon/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

using testing::HasSubstr;

TEST(Options, TakesEveryOption) {
  const auto options = parse_options(
      {"--runtime-dir", "/r", "--state-dir=/s", "--config", "/c", "--preload", "/p.so",
       "--publish-library", "/l", "--driver-root", "/d", "--log-level", "debug", "--check-config"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->runtime_dir, "/r");
  EXPECT_EQ(options->state_dir, "/s");
  EXPECT_EQ(options->config, "/c");
  EXPECT_EQ(options->preload, "/p.so");
  EXPECT_EQ(options->publish_library, "/l");
  EXPECT_EQ(options->driver_root, "/d");
  EXPECT_EQ(options->log_level, log::Level::kDebug);
  EXPECT_TRUE(options->check_config);
  EXPECT_FALSE(options->restore_devices);
  EXPECT_TRUE(parse_options({"--restore-device-files"})->restore_devices);
  EXPECT_THAT(parse_options({"--help"})->print, HasSubstr("\n  --config FILE "));
  EXPECT_THAT(parse_options({"--version"})->print, HasSubstr("gpurotad "));
  EXPECT_FALSE(parse_options({})->runtime_dir);
}

TEST(Options, SaysWhatIsWrong) {
  EXPECT_THAT(parse_options({"--frobnicate"}).error().message,
              HasSubstr("no option '--frobnicate'"));
  EXPECT_THAT(parse_options({"--check-confg"}).error().message,
              HasSubstr("did you mean --check-config?"));
  EXPECT_THAT(parse_options({"--config"}).error().message, HasSubstr("--config needs a value"));
  EXPECT_THAT(parse_options({"start"}).error().message, HasSubstr("unexpected argument 'start'"));
  EXPECT_THAT(parse_options({"--log-level", "loud"}).error().message, HasSubstr("loud"));
  EXPECT_THAT(parse_options({"\x1b[31m"}).error().message, testing::Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace gpurota::daemon
