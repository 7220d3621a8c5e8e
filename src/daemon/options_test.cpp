#include "daemon/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace gpurota::daemon {
namespace {

using testing::HasSubstr;

Result<Options> parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "gpurotad");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  return parse_options(static_cast<int>(arguments.size()), argv.data());
}

TEST(Options, TakesEveryOption) {
  const auto options = parse({"--runtime-dir", "/r", "--state-dir=/s", "--config", "/c",
                              "--preload", "/p.so", "--publish-library", "/l", "--driver-root",
                              "/d", "--log-level", "debug", "--check-config"});
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
  EXPECT_TRUE(parse({"--restore-device-files"})->restore_devices);
  EXPECT_TRUE(parse({"--help"})->help);
  EXPECT_TRUE(parse({"--version"})->version);
  EXPECT_FALSE(parse({})->runtime_dir);
}

TEST(Options, SaysWhatIsWrong) {
  EXPECT_THAT(parse({"--frobnicate"}).error().message, HasSubstr("no option --frobnicate"));
  EXPECT_THAT(parse({"--config"}).error().message, HasSubstr("--config needs a value"));
  EXPECT_THAT(parse({"start"}).error().message, HasSubstr("unexpected argument start"));
  EXPECT_THAT(parse({"--log-level", "loud"}).error().message, HasSubstr("loud"));
  EXPECT_THAT(parse({"\x1b[31m"}).error().message, testing::Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace gpurota::daemon
