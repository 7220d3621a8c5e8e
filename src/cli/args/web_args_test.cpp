#include "cli/args/args.h"

#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

TEST(WebArguments, SessionsOfTheWebPageAreListedOrEnded) {
  const auto web = std::get<WebOptions>(parse_arguments({"web", "--end", "W3"})->command);
  EXPECT_EQ(web.end, "W3");
  EXPECT_FALSE(parse_arguments({"web", "--end", "W3", "--list"}));
  EXPECT_FALSE(parse_arguments({"web", "--json"}));
}

}  // namespace
}  // namespace gpurota::cli
