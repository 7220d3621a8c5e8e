#include "cli/args/update_args.h"

#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

UpdateOptions update_of(std::vector<std::string> words) {
  words.insert(words.begin(), "update");
  const auto arguments = parse_arguments(words);
  EXPECT_TRUE(arguments) << arguments.error().message;
  return arguments ? std::get<UpdateOptions>(arguments->command) : UpdateOptions();
}

std::string refusal_of(std::vector<std::string> words) {
  words.insert(words.begin(), "update");
  const auto arguments = parse_arguments(words);
  return arguments ? "" : arguments.error().message;
}

TEST(UpdateArguments, TheNewEndIsALengthOrATime) {
  EXPECT_EQ(update_of({"L1", "--for", "2h"}).lasts, std::chrono::hours(2));
  EXPECT_EQ(update_of({"L1", "--until", "18:00"}).until, "18:00");
  EXPECT_NE(refusal_of({"L1", "--until", "18:00", "--for", "2h"}).find("give one of them"),
            std::string::npos);
  EXPECT_NE(refusal_of({"L1"}).find("--until"), std::string::npos);
}

}  // namespace
}  // namespace gpurota::cli
