#include "cli/status/status_columns.h"

#include "cli/args/args.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string mistake(const std::vector<std::string>& words) {
  const auto arguments = parse_arguments(words, {});
  return arguments ? "" : arguments.error().message;
}

TEST(StatusColumns, AppearInTheGivenOrder) {
  EXPECT_THAT(*parse_status_columns("user,gpu,user"), ElementsAre(kUser, kGpu, kUser));
}

TEST(StatusColumns, EachHasANameThatTheOptionAccepts) {
  const std::string names = status_column_names();
  std::string list;
  for (const char c : names) {
    if (c != ' ') list += c;
  }
  EXPECT_EQ(parse_status_columns(list)->size(), static_cast<std::size_t>(kStatusColumns)) << list;
}

TEST(StatusColumns, UnknownColumnIsReportedWithASuggestionOrAllColumns) {
  EXPECT_THAT(mistake({"status", "--format", ""}), HasSubstr("there is no column ''"));
  EXPECT_THAT(mistake({"status", "--format", "gpu,usr"}), HasSubstr("did you mean 'user'?"));
  EXPECT_THAT(mistake({"status", "--format", "gpu,"}), HasSubstr("give some of host, gpu, state"));
  EXPECT_THAT(mistake({"status", "--format", "a\nb"}), Not(HasSubstr("\n")));
  std::string many = "gpu";
  for (int i = 0; i < 64; ++i) many += ",gpu";
  EXPECT_THAT(mistake({"status", "--format", many}), HasSubstr("too many"));
}

TEST(StatusColumns, ExcludeOtherOutputFormats) {
  for (const char* const form : {"--json", "--summary"}) {
    EXPECT_THAT(mistake({"status", "--format", "gpu", form}), HasSubstr("cannot be combined"));
  }
  EXPECT_THAT(mistake({"status", "--no-titles"}), HasSubstr("needs --format"));
  EXPECT_EQ(mistake({"status", "--format", "gpu", "--no-titles", "--watch"}), "");
}

}  // namespace
}  // namespace gpurota::cli
