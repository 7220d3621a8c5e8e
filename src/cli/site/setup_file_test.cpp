#include "cli/site/setup_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

using ::testing::HasSubstr;

const SetupQuestion& question(std::string_view option) {
  for (const SetupQuestion& each : setup_questions()) {
    if (each.option == option) return each;
  }
  return setup_questions().front();
}

SetupValues answered(const std::vector<std::pair<std::string_view, std::string>>& answers) {
  SetupValues values;
  for (const auto& [option, answer] : answers) {
    EXPECT_TRUE(put_answer(values, question(option), answer));
  }
  return values;
}

config::Config config_of(const SetupValues& values) {
  const config::Loaded loaded = config::parse({{"s.toml", setup_file_text(values)}});
  EXPECT_EQ(config::mistakes_text(loaded), "");
  return loaded.config;
}

TEST(SetupFile, ShowsTheAnswers) {
  const SetupValues values = answered({{"--group", "lab"},
                                       {"--admin-group", "ops"},
                                       {"--user-gpus", "2"},
                                       {"--longest", "3d"},
                                       {"--automatic", "8G"},
                                       {"--strict", "on"}});
  const config::Config config = config_of(values);
  EXPECT_EQ(config.group, "lab");
  EXPECT_EQ(config.admin_group, "ops");
  EXPECT_TRUE(config.automatic.enabled);
  for (const SetupQuestion& each : setup_questions()) {
    EXPECT_EQ(answer_now(config, each), each.option == "--group"         ? "lab"
                                        : each.option == "--admin-group" ? "ops"
                                        : each.option == "--user-gpus"   ? "2"
                                        : each.option == "--longest"     ? "3d"
                                        : each.option == "--strict"      ? "on"
                                                                         : "8G");
  }
  const auto again = parse_setup_file({"s.toml", setup_file_text(values)});
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, values);
}

TEST(SetupFile, ChangesOnlyAnsweredSettings) {
  SetupValues values = answered({{"--group", "lab"}, {"--automatic", "8G"}});
  ASSERT_TRUE(put_answer(values, question("--automatic"), "off"));
  EXPECT_EQ(config_of(values).group, "lab");
  EXPECT_FALSE(config_of(values).automatic.enabled);
  ASSERT_TRUE(put_answer(values, question("--group"), "everybody"));
  EXPECT_EQ(config_of(values).group, "");
}

TEST(SetupFile, ShowsTheSettingsInEffectWithoutAnswers) {
  for (const SetupQuestion& each : setup_questions()) {
    EXPECT_EQ(answer_now(config_of({}), each), each.nothing) << each.option;
  }
}

TEST(SetupFile, RefusesAnswersThatWouldBreakTheFile) {
  SetupValues values;
  for (const char* answer : {"", "a b", "a\"b", "a\\", "a\nb = 1"}) {
    EXPECT_FALSE(put_answer(values, question("--group"), answer)) << answer;
  }
  for (const char* answer : {"", "two", "-1", "1e3", "9999999999"}) {
    EXPECT_FALSE(put_answer(values, question("--user-gpus"), answer)) << answer;
  }
  EXPECT_FALSE(put_answer(values, question("--strict"), "maybe"));
  EXPECT_TRUE(values.empty());
}

TEST(SetupFile, LeavesForeignFilesUnchanged) {
  const auto foreign = parse_setup_file({"s.toml", "group = \"lab\"\ngrace = \"5s\"\n"});
  ASSERT_FALSE(foreign);
  EXPECT_THAT(foreign.error().message, HasSubstr("s.toml:2: grace"));
  EXPECT_FALSE(parse_setup_file({"s.toml", "group = [\"lab\"]\n"}));
  EXPECT_FALSE(parse_setup_file({"s.toml", "group = "}));
}

}  // namespace
}  // namespace gpurota::cli
