#include "core/compute_share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gpurota {
namespace {

using ::testing::HasSubstr;

TEST(ComputeShare, IsAWholeNumberOfPercent) {
  EXPECT_EQ(parse_compute_share("30%").value(), 30);
  EXPECT_EQ(parse_compute_share("1").value(), 1);
  EXPECT_EQ(parse_compute_share("95%").value(), kMostComputeShare);
  EXPECT_EQ(parse_compute_share("0").value(), 0);
  for (const char* const wrong :
       {"", "%", "-5", "96%", "100%", "30 %", "0.3", "30%%", "+3", "x", "99999999999"}) {
    const auto parsed = parse_compute_share(wrong);
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_THAT(parsed.error().message, HasSubstr("from 1 to 95, such as 30%"));
  }
}

TEST(ComputeShare, OnlyASliceOfOneGpuHasOneAndAnErrorSaysWhatToAskForInstead) {
  const auto refusal = [](const ComputeTerms& terms) -> std::string {
    EXPECT_TRUE(check_compute_share(0, terms));
    const auto checked = check_compute_share(30, terms);
    return checked ? "" : checked.error().message;
  };
  EXPECT_EQ(refusal({.limited = true}), "");
  EXPECT_THAT(refusal({}), HasSubstr("add --memory 8G"));
  EXPECT_THAT(refusal({.limited = true, .swap = true}), HasSubstr("leave out --swap"));
  EXPECT_THAT(refusal({.limited = true, .filler = true}), HasSubstr("a filler leaves"));
  EXPECT_THAT(refusal({.limited = true, .interactive = true}), HasSubstr("--latency interactive"));
  EXPECT_THAT(refusal({.limited = true, .gpus = 2}), HasSubstr("ask for one GPU"));
  EXPECT_FALSE(check_compute_share(96, {.limited = true}));
  EXPECT_FALSE(check_compute_share(-1, {.limited = true}));
}

}  // namespace
}  // namespace gpurota
