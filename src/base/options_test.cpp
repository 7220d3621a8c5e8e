#include "base/options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpurota {
namespace {

constexpr Program kProgram = {"program", "1.2", "Usage: program\n\n", "\nSee program(8).\n"};

struct Typed {
  bool quick = false;
  std::string folder;
  std::optional<std::string> name;
  std::vector<std::string> hosts;
  int count = 0;
};

std::vector<Option> rows(Typed& typed) {
  return {{'q', "--quick", &typed.quick, "", "without looking"},
          {'\0', "--folder", &typed.folder, "DIR", "where it is,\nand stays"},
          {'\0', "--first-name", &typed.name, "NAME"},
          {'\0', "--host", &typed.hosts, "NAME", "one of these"},
          {'n', "--count",
           [&typed](const std::string& value) -> Result<void> {
             if (value != "7") return fail(Code::kInvalid, "not seven");
             typed.count = 7;
             return {};
           },
           "N", "how many"},
          {'\0', "--mode", &typed.name, "MODE", "how", "slow fast"}};
}

std::string refusal(const std::vector<std::string>& words) {
  Typed typed;
  const auto read = read_program_options(kProgram, rows(typed), words);
  return read ? "none" : read.error().message;
}

TEST(Options, ValuesAreStoredWhereTheRowsSay) {
  Typed typed;
  const auto read = read_program_options(
      kProgram, rows(typed),
      {"--folder", "/a", "--folder=/b", "--host", "x", "--host=y", "-qn7", "--first-name", "-"});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, "");
  EXPECT_TRUE(typed.quick);
  EXPECT_EQ(typed.folder, "/b");
  EXPECT_EQ(typed.name, "-");
  EXPECT_EQ(typed.hosts, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(typed.count, 7);
}

TEST(Options, OfAProgramMayBeAbbreviated) {
  Typed typed;
  ASSERT_TRUE(read_program_options(kProgram, rows(typed), {"--fo", "/a", "--co=7"}));
  EXPECT_EQ(typed.folder, "/a");
  EXPECT_EQ(typed.count, 7);
  EXPECT_EQ(refusal({"--f", "a"}), "there is no option '--f' (see 'program --help')");
}

TEST(Options, ErrorNamesTheWrongWord) {
  EXPECT_EQ(refusal({"--foldr\n", "x"}),
            "there is no option '--foldr\xEF\xBF\xBD': did you mean --folder? (see 'program "
            "--help')");
  EXPECT_EQ(refusal({"--quick=1"}),
            "there is no option '--quick=1': did you mean --quick? (see 'program --help')");
  EXPECT_EQ(refusal({"-qx"}), "there is no option '-qx' (see 'program --help')");
  EXPECT_EQ(refusal({"-h", "--folder"}), "--folder needs a value (see 'program --help')");
  EXPECT_EQ(refusal({"--folder", "--quick"}), "--folder needs a value (see 'program --help')");
  EXPECT_EQ(refusal({"-h", "extra"}), "unexpected argument 'extra' (see 'program --help')");
  EXPECT_EQ(refusal({"--count", "8"}), "not seven");
  EXPECT_EQ(refusal({"--mode", "odd"}), "--mode: 'odd' is not slow or fast");
}

TEST(Options, AreExplainedByHelp) {
  Typed typed;
  EXPECT_EQ(*read_program_options(kProgram, rows(typed), {"-h"}), R"(Usage: program

  -q, --quick             without looking
  --folder DIR            where it is,
                          and stays
  --first-name NAME, --host NAME
                          one of these
  -n, --count N           how many
  --mode MODE             how
  -h, --help, -V, --version

See program(8).
)");
  EXPECT_EQ(*read_program_options(kProgram, rows(typed), {"--version"}), "program 1.2\n");
}

TEST(Options, OptionsAfterAWordBelongToThatWord) {
  Typed typed;
  const auto rest = read_options(rows(typed), {"program --help", true, false, {}},
                                 {"-q", "word", "--folder", "a"});
  EXPECT_EQ(*rest, (std::vector<std::string>{"word", "--folder", "a"}));
  EXPECT_EQ(typed.folder, "");
}

}  // namespace
}  // namespace gpurota
