#include "cli/args/args.h"
#include "cli/site/config_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ConfigOptions parsed(const std::vector<std::string>& words) {
  const auto arguments = parse_arguments(words);
  if (!arguments) {
    ADD_FAILURE() << arguments.error().message;
    return {};
  }
  return std::get<ConfigOptions>(arguments->command);
}

std::string refusal(const std::vector<std::string>& words) {
  const auto arguments = parse_arguments(words);
  return arguments ? "accepted" : arguments.error().message;
}

proto::ConfigSetting setting(const std::string& key, const std::string& value,
                             const std::optional<std::string>& usual, proto::ConfigSource source) {
  proto::ConfigSetting made;
  made.key = key;
  made.value = value;
  made.default_value = usual;
  made.source = source;
  if (source == proto::ConfigSource::kFile) {
    made.file = "/etc/gpurota/gpurota.toml";
    made.line = 12;
  }
  return made;
}

TEST(ConfigArgs, EachActionTakesWhatItNeeds) {
  EXPECT_EQ(parsed({"config", "check"}).file, std::nullopt);
  EXPECT_EQ(parsed({"config", "check", "a.toml"}).file, "a.toml");
  EXPECT_EQ(parsed({"config", "diff", "a.toml"}).action, "diff");
  EXPECT_TRUE(parsed({"config", "show", "--changed", "--json"}).changed);
  EXPECT_TRUE(parsed({"config", "show", "--changed", "--json"}).json);
}

TEST(ConfigArgs, SaysWhatToWriteInstead) {
  EXPECT_THAT(refusal({"config", "chck"}), HasSubstr("did you mean 'config check'?"));
  EXPECT_THAT(refusal({"config", "edit"}), HasSubstr("use check, show or diff"));
  EXPECT_THAT(refusal({"config", "show", "a.toml"}), HasSubstr("unexpected 'a.toml'"));
  EXPECT_THAT(refusal({"config", "check", "a", "b"}), HasSubstr("unexpected 'b'"));
  EXPECT_THAT(refusal({"config", "check", ""}), HasSubstr("the file has no name"));
  EXPECT_THAT(refusal({"config", "validate"}), HasSubstr("did you mean 'config check'?"));
  EXPECT_THAT(refusal({"config", "check", "--changed"}), HasSubstr("--changed"));
  EXPECT_THAT(refusal({"conifg", "check"}), HasSubstr("gpurota config check"));
}

TEST(ConfigText, ASettingIsShownWithWhereItComesFrom) {
  proto::ShowConfig::Reply reply;
  reply.settings = {
      setting("grace", "5s", "5s", proto::ConfigSource::kDefault),
      setting("group", "a", "\"\"", proto::ConfigSource::kFile),
      setting("turns.gpu.0.capacity", "24G", std::nullopt, proto::ConfigSource::kSet)};
  reply.settings[1].at_restart = "b";
  reply.hidden = 2;
  EXPECT_EQ(settings_text(reply, false, {}),
            "SETTING               VALUE  FROM\n"
            "grace                 5s     default\n"
            "group                 a      /etc/gpurota/gpurota.toml:12, b at the next restart\n"
            "turns.gpu.0.capacity  24G    gpurota set\n"
            "2 settings about other users are not shown\n");
  EXPECT_THAT(settings_text(reply, true, {}), Not(HasSubstr("grace")));
  EXPECT_EQ(changed_settings(reply).size(), 2u);
  EXPECT_EQ(settings_text({}, true, {}), "every setting has its default\n");
}

TEST(ConfigText, ADiffLeavesOutWhatIsHiddenAndWhatWasSetAtRunTime) {
  config::Config config;
  proto::ShowConfig::Reply reply;
  for (const config::ShownSetting& each : config::shown_settings(config)) {
    reply.settings.push_back(
        setting(each.key, each.value, each.usual, proto::ConfigSource::kDefault));
  }
  EXPECT_EQ(changes_text(changes_of(reply, config), true), "nothing would change");
  config.grace = std::chrono::seconds(9);
  config.limits.users["bob"].gpus = 1;
  config.turns.gpus["0"].capacity = SizeSpec{gib(8), 0};
  EXPECT_EQ(changes_text(changes_of(reply, config), true),
            "grace: 5s → 9s\nlimits.user.bob.gpus: not set → 1\nturns.gpu.0.capacity: not set → "
            "8G");
  reply.hidden = 1;
  reply.settings.push_back(
      setting("turns.gpu.0.capacity", "4G", std::nullopt, proto::ConfigSource::kSet));
  EXPECT_EQ(changes_text(changes_of(reply, config), true), "grace: 5s → 9s");
}

TEST(ConfigText, UnchangedConfigIsReported) {
  EXPECT_EQ(changes_text({}, false), "nothing has changed");
}

}  // namespace
}  // namespace gpurota::cli
