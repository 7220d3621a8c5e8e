#include "cli/args/args.h"
#include "cli/exit_codes.h"

#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

TopOptions options_of_top(const std::vector<std::string>& words) {
  return std::get<TopOptions>(parse_arguments(words)->command);
}

TEST(TopArguments, TakeASize) {
  EXPECT_FALSE(options_of_top({"top"}).once);
  EXPECT_TRUE(options_of_top({"top", "--once"}).once);
  const TopOptions sized = options_of_top({"top", "--size", "120x40"});
  EXPECT_TRUE(sized.once);
  EXPECT_EQ(sized.width, 120u);
  EXPECT_EQ(sized.height, 40u);
}

TEST(TopArguments, InvalidSizeIsRefused) {
  for (const std::string size :
       {"", "80", "x24", "80x", "0x24", "80x2000", "-1x5", "80x24x3", "8 0x24"}) {
    const auto refused = parse_arguments({"top", "--size=" + size});
    ASSERT_FALSE(refused) << size;
    EXPECT_EQ(refused.error().exit_code, kExitUsage);
    EXPECT_NE(refused.error().message.find("80x24"), std::string::npos);
  }
}

}  // namespace
}  // namespace gpurota::cli
