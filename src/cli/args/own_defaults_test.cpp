// The user's own defaults: what is allowed, and how they combine with typed options.
#include "cli/args/own_defaults.h"

#include "cli/args/args.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

OwnDefaults defaults_of(const std::string& text) {
  const auto defaults = parse_own_defaults(text, "/c.toml");
  EXPECT_TRUE(defaults) << defaults.error().message;
  return defaults.value_or(OwnDefaults{});
}

std::string mistake(const std::string& text) {
  const auto defaults = parse_own_defaults(text, "/c.toml");
  return defaults ? "none" : defaults.error().message;
}

Arguments typed(const std::vector<std::string>& words, const std::string& text) {
  auto arguments = parse_arguments(words, defaults_of(text));
  EXPECT_TRUE(arguments) << arguments.error().message;
  return arguments.value_or(Arguments{});
}

RunOptions run_of(const std::vector<std::string>& options, const std::string& text) {
  std::vector<std::string> words = {"run"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"--", "true"});
  return std::get<RunOptions>(typed(words, text).command);
}

constexpr const char* kDefaults =
    "[run]\nmemory = \"8G\"\nswap = true\npriority = 3\n[reserve]\nfor = \"2h\"\ngpu-ids = [\"0\", "
    "\"1\"]\n"
    "[output]\ncolor = \"never\"\n";

TEST(OwnDefaults, DefaultsAddMissingOptions) {
  const RunOptions run = run_of({}, kDefaults);
  EXPECT_EQ(run.memory, SizeSpec{gib(8)});
  EXPECT_TRUE(run.swap);
  EXPECT_EQ(run.priority, 3);
  const Arguments reserve = typed({"reserve"}, kDefaults);
  EXPECT_THAT(std::get<ReserveOptions>(reserve.command).gpu_ids, ElementsAre("0", "1"));
  EXPECT_EQ(std::get<ReserveOptions>(reserve.command).lasts, std::chrono::hours(2));
  EXPECT_EQ(reserve.defaults, "--gpu-ids 0 --gpu-ids 1 --for 2h");
}

TEST(OwnDefaults, TypedOptionsOverrideDefaults) {
  EXPECT_EQ(run_of({"--memory", "2G"}, kDefaults).memory, SizeSpec{gib(2)});
  const auto reserve =
      std::get<ReserveOptions>(typed({"reserve", "--gpus", "2"}, kDefaults).command);
  EXPECT_EQ(reserve.gpus, 2);
  EXPECT_TRUE(reserve.gpu_ids.empty());
  EXPECT_FALSE(run_of({"--no-defaults"}, kDefaults).memory);
}

TEST(OwnDefaults, DoNotApplyToAnExistingReservation) {
  EXPECT_FALSE(run_of({"--lease", "L7"}, kDefaults).memory);
}

TEST(OwnDefaults, DoNotCountAsTypedOptions) {
  const auto run = run_of({}, kDefaults);
  EXPECT_TRUE(run.memory);
  EXPECT_TRUE(run.typed.placement.empty());
}

TEST(OwnDefaults, DoNotApplyToJobs) { EXPECT_FALSE(parse_run_words({"--gpus", "1"})->memory); }

TEST(OwnDefaults, OutputDefaultsApplyToEveryCommand) {
  EXPECT_EQ(typed({"status"}, kDefaults).color, "never");
  EXPECT_EQ(typed({"--color", "always", "status"}, kDefaults).color, "always");
  EXPECT_TRUE(typed({"job", "list"}, "[output]\nquiet = true\n").quiet);
}

TEST(OwnDefaults, ErrorNamesTheDefaultThatCausedIt) {
  const auto run = parse_arguments({"run", "--", "true"}, defaults_of("[run]\nmemory = \"8X\"\n"));
  ASSERT_FALSE(run);
  EXPECT_THAT(run.error().message, HasSubstr("--memory: "));
  EXPECT_THAT(run.error().message, HasSubstr("in /c.toml: --memory 8X; --no-defaults"));
}

TEST(OwnDefaults, MistakesAreReportedWithTheirLine) {
  EXPECT_THAT(
      mistake("[run]\nmemry = \"8G\"\n"),
      StartsWith(
          "/c.toml:2: run.memry: there is no such option of gpurota run; did you mean memory?"));
  EXPECT_THAT(mistake("[run]\nlease = \"L7\"\n"), HasSubstr("type it each time"));
  EXPECT_THAT(mistake("[run]\nswap = \"yes\"\n"), HasSubstr("write true or false"));
  EXPECT_THAT(mistake("[run]\nmemory = true\n"), HasSubstr("in quotes"));
  EXPECT_THAT(mistake("[run]\ncolor = \"never\"\n"), HasSubstr("no such option"));
  EXPECT_THAT(mistake("[output]\ncolor = \"red\"\n"),
              HasSubstr("output.color: --color: 'red' is not"));
  EXPECT_THAT(mistake("[status]\n"), HasSubstr("[run], [reserve] or [output]"));
  EXPECT_THAT(mistake("run = 1\n"), HasSubstr("write it as a section: [run]"));
  EXPECT_THAT(mistake("[run]\nmemory = 8G\n"), HasSubstr("/c.toml:2"));
}

}  // namespace
}  // namespace gpurota::cli
