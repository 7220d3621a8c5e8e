#include "cli/jobs/command_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::vector<std::string>> lines(std::string_view text) {
  std::vector<std::vector<std::string>> out;
  const auto commands = parse_command_lines(text, "f");
  EXPECT_TRUE(commands) << commands.error().message;
  for (const proto::ItemCommand& each : *commands) out.push_back(each.words);
  return out;
}

std::string refusal(std::string_view text) {
  const auto commands = parse_command_lines(text, "f");
  EXPECT_FALSE(commands);
  return commands ? "" : commands.error().message;
}

TEST(CommandLines, AreSplitLikeAShellDoes) {
  EXPECT_THAT(lines("a b\n\n# nothing\n  c  'd e'\t\"f \\\" \\g\" h\\ i # behind\nj#k ''\r\n"),
              ElementsAre(ElementsAre("a", "b"), ElementsAre("c", "d e", "f \" \\g", "h i"),
                          ElementsAre("j#k", "")));
  EXPECT_THAT(lines("sh -c 'echo $A > b'"), ElementsAre(ElementsAre("sh", "-c", "echo $A > b")));
  EXPECT_THAT(lines("last without a newline"),
              ElementsAre(ElementsAre("last", "without", "a", "newline")));
}

TEST(CommandLines, TheLineThatCannotBeReadIsNamed) {
  EXPECT_EQ(refusal("a\n\nb 'c\nd'\n"), "f:3: a ' is not closed on this line");
  EXPECT_THAT(refusal("a \\\nb\n"), HasSubstr("f:1: a backslash at the end"));
  for (const char* line :
       {"a | b", "a > b", "a &", "a; b", "echo $A", "echo \"$A\"", "ls *", "(a)"}) {
    EXPECT_THAT(refusal(std::string("ok\n") + line), HasSubstr("f:2: '")) << line;
    EXPECT_THAT(refusal(line), HasSubstr("sh -c")) << line;
  }
  EXPECT_THAT(refusal("'' a"), HasSubstr("f:1: the command has no name"));
  EXPECT_THAT(refusal(std::string_view("a\0b", 3)), HasSubstr("f:1: it contains a NUL"));
  EXPECT_THAT(refusal("# only this\n"), HasSubstr("f has no commands"));
  EXPECT_THAT(refusal(""), HasSubstr("f has no commands"));
}

}  // namespace
}  // namespace gpurota::cli
