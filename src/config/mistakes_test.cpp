// Tests of the messages about mistakes in a configuration: the full texts, as people see them.
#include "config/loaded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>

namespace gpurota::config {
namespace {

struct Case {
  const char* name;
  const char* text;
  const char* told;  // every mistake, one per line
};

void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }

class ConfigMistakes : public ::testing::TestWithParam<Case> {};

TEST_P(ConfigMistakes, AllMistakesAreReportedWithPlaceAndSuggestion) {
  EXPECT_EQ(mistakes_text(parse({{"f", GetParam().text}})), GetParam().told);
}

INSTANTIATE_TEST_SUITE_P(
    Values, ConfigMistakes,
    ::testing::Values(
        Case{"AForgottenUnit", "[limits.group.students]\nmemory = \"8\"\npinned = 512\n",
             "f:2: limits.group.students.memory: '8' is 8 bytes; did you mean 8G?\n"
             "f:3: limits.group.students.pinned: '512' is 512 bytes; did you mean 512M?"},
        Case{"AWrongUnit", "job_log_size_per_user = \"2 gigs\"\n",
             "f:1: job_log_size_per_user: '2 gigs' is not a size: the unit is none of K, M, G, T; "
             "write for example 8G, 1.5GiB, 512M or a number of bytes"},
        Case{"ATimeWithoutUnit", "grace = 5\n\nreconnect_grace = \"30\"\n",
             "f:1: grace: 5 has no unit: write a time such as \"5s\" or \"5m\"\n"
             "f:3: reconnect_grace: '30' is not a time: write a time up to a day such as "
             "\"250ms\", \"5s\" or \"2m\""},
        Case{"AFraction", "history_days = 1.5\n",
             "f:1: history_days: 1.5 is not a number: write a whole number from 1 to 36500"},
        Case{"ANumberInQuotes", "max_leases_per_user = \"3\"\n",
             "f:1: max_leases_per_user: '3' is not a number: write a whole number from 1 to "
             "100000, without quotes"},
        Case{"ASwitchInQuotes", "program_notices = \"true\"\n",
             "f:1: program_notices: 'true' is not a switch: write true or false, without quotes"},
        Case{"AClassOfNothing", "[gpu.class.big]\n[gpu.class.old]\nmin_cc = \"7.5\"\n",
             "f:1: gpu.class.big: it says of no GPU: give type, min_memory, min_cc or gpus"},
        Case{"AClassWithMistakes", "[gpu.class.big]\nmin_cc = 8\ngpus = [0, -1]\ntyp = \"h100\"\n",
             "f:2: gpu.class.big.min_cc: 8 is not a compute capability: write it in quotes, as "
             "\"8.0\"\n"
             "f:3: gpu.class.big.gpus: -1 is not a GPU: write indices or UUIDs between brackets: "
             "[0, 1]\n"
             "f:4: gpu.class.big.typ: no such setting; did you mean gpu.class.big.type?"},
        Case{"AGpuWithMistakes", "[gpu.0]\nunlisted = \"much\"\nunlited = \"2G\"\n",
             "f:2: gpu.0.unlisted: 'much' is not a size: it does not start with a number; write "
             "for example "
             "8G, 1.5GiB, 512M or a number of bytes\n"
             "f:3: gpu.0.unlited: no such setting; did you mean gpu.0.unlisted?"},
        Case{"AMistypedClass", "[gpu.clas.big]\nmin_cc = \"8.0\"\n",
             "f:1: gpu.clas: no such section; did you mean gpu.class?"},
        Case{"AWeightOfNothing", "[fair_share.user.bob]\nweight = 0\n",
             "f:2: fair_share.user.bob.weight: 0 is out of range: write a whole number from 1 to "
             "10000"},
        Case{"AnUnknownWord", "privacy = \"opn\"\n[watch]\nunused = \"kill\"\n",
             "f:1: privacy: 'opn' is not known here: write \"owner\" or \"open\"; did you mean "
             "\"open\"?\n"
             "f:3: watch.unused: 'kill' is not known here: write \"report\", \"notify\" or "
             "\"stop\""},
        Case{"OneNameInsteadOfAList", "[automatic]\nusers = \"alice\"\n",
             "f:2: automatic.users: 'alice' is not a list: write names in quotes, between "
             "brackets: [\"alice\", \"bob\"]"},
        Case{"ARuleWithSeveralMistakes",
             "[[watch.rule]]\nusers = [\"alice\"]\naction = \"stop\"\n\n[[watch.rule]]\nfinding = "
             "\"unusd\"\nuser = [\"bob\"]\naction = \"end\"\n",
             "f:5: watch.rule[2]: whom is it about? Name users or groups\n"
             "f:6: watch.rule[2].finding: 'unusd' is not a finding: write unreserved_use, "
             "foreign_use, over_limit, unused or not_limited; did you mean unused?\n"
             "f:7: watch.rule[2].user: no such setting; did you mean users?\n"
             "f:8: watch.rule[2].action: 'end' is not known here: write \"report\", \"notify\" or "
             "\"stop\""},
        Case{"ARuleInOneBracket", "[watch.rule]\nusers = [\"a\"]\n",
             "f:1: watch.rule: write it as a list of tables, with [[two brackets]]"}),
    [](const auto& each) { return each.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Keys, ConfigMistakes,
    ::testing::Values(
        Case{"MistypedOnes", "[limits]\nmemry = \"8G\"\n[limits.user.alice]\ngpu = 1\n",
             "f:2: limits.memry: no such setting; did you mean limits.memory?\n"
             "f:4: limits.user.alice.gpu: no such setting; did you mean limits.user.alice.gpus?"},
        Case{"AMistypedSection", "[limts]\ngpus = 1\n[limits.users.alice]\ngpus = 1\n",
             "f:1: limts: no such section; did you mean limits?\n"
             "f:3: limits.users: no such section; did you mean limits.user?"},
        Case{"AnUnknownEnforcement", "enforcement = \"drivers\"\n",
             "f:1: enforcement: 'drivers' is not known here: write \"auto\", \"library\" or "
             "\"driver\"; did you mean \"driver\"?"},
        Case{"OneThatStandsBehindASection", "[limits]\ngpus = 1\nprivacy = \"open\"\n",
             "f:3: limits.privacy: no such setting; did you mean privacy, which stands before the "
             "first [section]?"},
        Case{"OneOfAnotherSection", "host_budget = \"50%\"\n",
             "f:1: host_budget: no such setting; did you mean turns.host_budget?"},
        Case{"OneThatThereIsNowhere", "runtime_dir = \"/run\"\n",
             "f:1: runtime_dir: no such setting"},
        Case{"AValueInPlaceOfASection", "[limits.user]\nalice = 3\n",
             "f:2: limits.user.alice: 3 is not a section: write [limits.user.alice]"},
        Case{"AnotherThatIsMissing", "[automatic]\nenabled = true\n",
             "f:1: automatic.memory: it is missing: say how much of a GPU each program gets, such "
             "as memory = \"8G\""}),
    [](const auto& each) { return each.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Syntax, ConfigMistakes,
    ::testing::Values(
        Case{"AWordWithoutQuotes", "# who\nadmin_group = gpu_admins # all\n",
             "f:2: admin_group: text needs quotes: \"gpu_admins\""},
        Case{"ASizeWithoutQuotes", "[limits]\nmemory = 8G\n",
             "f:2: limits.memory: text needs quotes: \"8G\""},
        Case{"ATimeWithoutQuotes", "grace = 5s\n", "f:1: grace: text needs quotes: \"5s\""},
        Case{"AShareWithoutQuotes", "[turns]\nhost_budget = 50%\n",
             "f:2: turns.host_budget: text needs quotes: \"50%\""},
        Case{"AMissingQuote", "group = \"gpu\nprivacy = \"open\"\n",
             "f:1: group: the closing quote is missing: \"gpu\""},
        Case{"ASectionTwice", "[limits]\ngpus = 1\n[watch]\n[limits]\nhours = 2\n",
             "f:4: the section [limits] is there twice (first in line 1): put its settings "
             "together"},
        Case{"AKeyTwice", "[watch]\nunused = \"stop\"\n[limits]\ngpus = 1\ngpus = 2\n",
             "f:5: limits.gpus: it is set twice (first in line 4): leave one of them out"},
        Case{"AMissingValue", "privacy =\n", "f:1: privacy: the value is missing"},
        Case{"AColon", "privacy: \"open\"\n", "f:1: write '=' instead of ':': privacy = …"},
        Case{"NoEqualsSign", "privacy \"open\"\n",
             "f:1: 'privacy \"open\"' is not a setting: write key = value"},
        Case{"AMissingBracket", "[watch\nunused = \"stop\"\n",
             "f:1: the closing bracket of the section is missing: [watch]"},
        Case{"AnOpenList", "[automatic]\nusers = [\"a\", \"b\"\ngpus = 2\n",
             "f:3: automatic.gpus: a list is not closed, or lacks a comma: [\"alice\", \"bob\"]"},
        Case{"NamesWithoutQuotes", "[automatic]\nusers = [alice, bob]\n",
             "f:2: automatic.users: a list is written so: [\"alice\", \"bob\"], with quotes and "
             "commas"},
        Case{"ACapitalLetter", "program_notices = True\n",
             "f:1: program_notices: 'True' is written in small letters: true"},
        Case{"YesInsteadOfTrue", "[automatic]\nenabled = yes\n",
             "f:2: automatic.enabled: 'yes' is text, which needs quotes: \"yes\"; or is true or "
             "false meant?"},
        Case{"TypographicQuotes", "group = “gpu”\n",
             "f:1: group: these are typographic quotes: write straight ones, \"…\""},
        Case{"AnOpenText", "group = \"\"\"\ngpu\n",
             "f:2: the file ends within a value that begins above: a closing quote or bracket is "
             "missing"},
        Case{"ANumberThatIsTooLarge", "history_days = 99999999999999999999\n",
             "f:1: history_days: this is not TOML: Error while parsing decimal integer: "
             "'99999999999999999999' is not representable in 64 bits"},
        Case{"NoText", "\x7f\x45\xff = \xfe\n",
             "f:1: the text is not UTF-8: save the file in that encoding"},
        Case{"ABackslash", "group = \"A\\gpu\"\n",
             "f:1: group: a backslash within \"…\" begins a special character: write '…' instead "
             "of \"…\""},
        Case{"AnotherEncoding", "group = \"gr\xfcn\"\n",
             "f:1: group: the text is not UTF-8: save the file in that encoding"}),
    [](const auto& each) { return each.param.name; });

TEST(ConfigMistakesTest, AreBoundedAndTheOthersCounted) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "nosuchkey" + std::to_string(i) + " = 1\n";
  const Loaded loaded = parse({{"f", text}});
  EXPECT_EQ(loaded.mistakes.size(), kMostMistakes);
  EXPECT_EQ(loaded.mistake_count(), 3000u);
  EXPECT_EQ(loaded.mistakes.front().place.line, 1);
  EXPECT_THAT(mistakes_text(loaded), ::testing::EndsWith("\nand 2950 more"));
}

TEST(ConfigMistakesTest, ALineThatWouldNestTooDeepIsRefusedBeforeItIsRead) {
  std::string text = "a";
  for (int i = 0; i < 100000; ++i) text += ".a";
  EXPECT_EQ(mistakes_text(parse({{"f", text + " = 1\n"}})), "f:1: the line is longer than 16 KiB");
  text.resize(16000);
  EXPECT_EQ(mistakes_text(parse({{"f", text + "a = 1\n"}})), "f:1: a: no such section");
}

TEST(ConfigMistakesTest, AFileOfEmptyLinesCostsNoMoreThanItsLength) {
  const std::string text = std::string(1000000, '\n') + "a = b\n";
  EXPECT_EQ(mistakes_text(parse({{"f", text}})), "f:1000001: a: text needs quotes: \"b\"");
}

}  // namespace
}  // namespace gpurota::config
