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

TEST(ComputeShare, ABoundIsAWholeNumberOfPercentAndAHundredIsNone) {
  EXPECT_EQ(compute_bound(parse_compute_bound("50%").value()), 50);
  EXPECT_EQ(compute_bound(parse_compute_bound("99").value()), 99);
  EXPECT_EQ(compute_bound(parse_compute_bound("100%").value()), 0);
  for (const char* const wrong : {"", "0", "0%", "101%", "-5", "0.5", "x"}) {
    const auto parsed = parse_compute_bound(wrong);
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_THAT(parsed.error().message, HasSubstr("from 1 to 99, such as 50%, or 100%"));
  }
}

TEST(ComputeShare, ABoundIsNotBelowTheShare) {
  const ComputeTerms slice{.limited = true};
  EXPECT_TRUE(check_compute_share({30, 50}, slice));
  EXPECT_TRUE(check_compute_share({30, 30}, slice));
  EXPECT_TRUE(check_compute_share({0, 50}, slice));
  EXPECT_EQ(check_compute_share({60, 50}, slice).error().message,
            "--compute 60% is above --compute-max 50%: write --compute 50%, or --compute-max 60% "
            "or more");
  EXPECT_FALSE(check_compute_share({0, 100}, slice));
  EXPECT_THAT(check_compute_share({0, 50}, {}).error().message,
              HasSubstr("leave out --compute-max"));
}

TEST(ComputeShare, OnlyASliceOfOneGpuHasOneAndAnErrorSaysWhatToAskForInstead) {
  const auto refusal = [](const ComputeTerms& terms) -> std::string {
    EXPECT_TRUE(check_compute_share({}, terms));
    const auto checked = check_compute_share({30, 0}, terms);
    return checked ? "" : checked.error().message;
  };
  EXPECT_EQ(refusal({.limited = true}), "");
  EXPECT_THAT(refusal({}), HasSubstr("add --memory 8G"));
  EXPECT_THAT(refusal({.limited = true, .swap = true}), HasSubstr("leave out --swap"));
  EXPECT_THAT(refusal({.limited = true, .filler = true}), HasSubstr("a filler leaves"));
  EXPECT_THAT(refusal({.limited = true, .interactive = true}), HasSubstr("--latency interactive"));
  EXPECT_THAT(refusal({.limited = true, .gpus = 2}), HasSubstr("ask for one GPU"));
  EXPECT_FALSE(check_compute_share({96, 0}, {.limited = true}));
  EXPECT_FALSE(check_compute_share({-1, 0}, {.limited = true}));
}

}  // namespace
}  // namespace gpurota
