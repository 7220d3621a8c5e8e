#include "config/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::config {
namespace {

std::vector<std::string> told(const std::string& text) {
  const Loaded loaded = parse({{"f", text}});
  EXPECT_EQ(mistakes_text(loaded), "");
  const AccountQuestions ask = {[](const NamedAccount& account) -> Result<void> {
                                  if (account.name == "slow")
                                    return fail(Code::kIo, "the directory is down");
                                  const bool known = account.is_group ? account.name == "students"
                                                                      : account.name == "alice";
                                  if (known) return {};
                                  return fail(Code::kNotFound, "none");
                                },
                                [](bool groups) {
                                  return groups ? std::vector<std::string>{"students"}
                                                : std::vector<std::string>{"alice", "root"};
                                }};
  std::vector<std::string> lines;
  for (const Problem& each : unknown_accounts(named_accounts(loaded, 0), ask)) {
    lines.push_back(to_string(each));
  }
  return lines;
}

TEST(ConfigNames, UnknownUsersAndGroupsAreReportedWithTheirLines) {
  EXPECT_THAT(told(R"(admin_group = "students"
[limits.user.alice]
gpus = 1
[limits.user.alicce]
gpus = 1
[limits.group.student]
[automatic]
users = ["alice", "@studnets", "bob"]
[[watch.rule]]
users = ["allice"]
groups = ["none"]
action = "stop"
[access]
users = ["alice", "alise"]
groups = ["students", "gone"]
)"),
              ::testing::UnorderedElementsAre(
                  "f:4: limits.user.alicce: no such user; did you mean alice?",
                  "f:6: limits.group.student: no such group; did you mean students?",
                  "f:8: automatic.users: no such group 'studnets'; did you mean students?",
                  "f:8: automatic.users: no such user 'bob'",
                  "f:9: watch.rule[1]: no such user 'allice'; did you mean alice?",
                  "f:9: watch.rule[1]: no such group 'none'",
                  "f:14: access.users: no such user 'alise'; did you mean alice?",
                  "f:15: access.groups: no such group 'gone'"));
}

TEST(ConfigNames, TheUserOfNotifyIsNamedWhereThereArePrograms) {
  EXPECT_THAT(told("[notify]\nuser = \"alise\"\n"), ::testing::IsEmpty());
  EXPECT_THAT(
      told("[notify]\nmail = true\nuser = \"alise\"\n"),
      ::testing::ElementsAre("f:3: notify.user: no such user 'alise'; did you mean alice?"));
  EXPECT_THAT(told("[notify]\nmail = true\n"),
              ::testing::ElementsAre("f:1: notify.user: no such user 'gpurota-notify': "
                                     "systemd-sysusers makes it, and nothing is sent until then"));
}

TEST(ConfigNames, UnavailableUserDirectoryIsReported) {
  EXPECT_THAT(
      told("group = \"slow\"\n"),
      ::testing::ElementsAre("f:1: group: cannot look up the group 'slow': the directory is down"));
}

TEST(ConfigNames, ConfigurationWithoutNamesHasNoMistakes) {
  EXPECT_THAT(told("grace = \"1s\"\n"), ::testing::IsEmpty());
}

}  // namespace
}  // namespace gpurota::config
