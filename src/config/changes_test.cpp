#include "config/changes.h"

#include "config/loaded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gpurota::config {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<ShownSetting> shown(const std::string& text) {
  const Loaded loaded = parse({{"f", text}});
  EXPECT_EQ(mistakes_text(loaded), "");
  return shown_settings(loaded.config);
}

std::vector<std::string> changed(const std::string& before, const std::string& after) {
  std::vector<std::string> lines;
  for (const Change& each : changes(shown(before), shown(after))) lines.push_back(to_string(each));
  return lines;
}

TEST(ConfigChanges, HaveTheKeyAndBothValues) {
  EXPECT_THAT(
      changed("[limits.user.alice]\nmemory = \"8G\"\ngpus = 2\n",
              "grace = \"90s\"\n[limits.user.alice]\nmemory = \"16G\"\n[limits]\nhours = "
              "100\n"),
      ElementsAre("grace: 5s → 90s", "limits.hours: unlimited → 100",
                  "limits.user.alice.gpus: 2 → not set", "limits.user.alice.memory: 8G → 16G"));
}

TEST(ConfigChanges, SameValueInAnotherSpellingIsNoChange) {
  EXPECT_THAT(changed("grace = \"60s\"\n[limits]\nmemory = \"8G\"\n",
                      "grace = \"1m\"\n[limits]\nmemory = \"8192M\"\n"),
              IsEmpty());
  EXPECT_THAT(changed("", "[limits]\nwaiting = 64\n[turns]\nmode = \"auto\"\n"), IsEmpty());
}

TEST(ConfigChanges, SettingThatNeedsARestartIsReported) {
  EXPECT_THAT(changed("", "group = \"gpu\"\n"),
              ElementsAre("group: \"\" → gpu: takes effect at the next restart"));
}

TEST(ConfigChanges, RulesAreComparedOneByOne) {
  EXPECT_THAT(
      changed("[[watch.rule]]\nusers = [\"a\"]\naction = \"stop\"\n",
              "[[watch.rule]]\nusers = [\"a\"]\naction = \"notify\"\n[[watch.rule]]\nfinding = "
              "\"unused\"\ngroups = [\"g\"]\naction = \"stop\"\n"),
      ElementsAre("watch.rule[1]: all findings of users [a]: stop → all findings of users [a]: "
                  "notify",
                  "watch.rule[2]: not set → unused of groups [g]: stop"));
}

TEST(ConfigChanges, EverySettingIsShownWithItsDefault) {
  const auto all = shown("");
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(),
                             [](const auto& a, const auto& b) { return a.key < b.key; }));
  for (const ShownSetting& each : all) EXPECT_EQ(each.value, each.usual) << each.key;
  const auto value = [&](const std::string& key) {
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const ShownSetting& each) { return each.key == key; });
    return found == all.end() ? "" : found->value;
  };
  EXPECT_EQ(value("grace"), "5s");
  EXPECT_EQ(value("hours_window"), "7d");
  EXPECT_EQ(value("unreserved_threshold"), "1G");
  EXPECT_EQ(value("limits.gpus"), "unlimited");
  EXPECT_EQ(value("limits.waiting"), "64");
  EXPECT_EQ(value("turns.capacity"), "100%");
  EXPECT_EQ(value("turns.quantum"), "auto");
  EXPECT_EQ(value("turns.stopped_deadline"), "10m");
  EXPECT_EQ(value("automatic.memory"), "none");
  EXPECT_EQ(value("automatic.users"), "[]");
  EXPECT_EQ(value("keep_free_gpus"), "1h");
  EXPECT_EQ(value("longest_wait"), "1d");
  EXPECT_EQ(value("bookings.open_ended"), "until-booking");
  EXPECT_EQ(value("bookings.longest"), "3d");
  EXPECT_EQ(value("bookings.user_share"), "25");
}

TEST(ConfigChanges, EverythingThatTakesARestartIsKept) {
  Config next;
  next.group = "gpu";
  keep_until_restart(next, Config{});
  for (const Change& each : changes(shown_settings(Config{}), shown_settings(next))) {
    EXPECT_FALSE(each.takes_restart) << each.key;
  }
}

}  // namespace
}  // namespace gpurota::config
