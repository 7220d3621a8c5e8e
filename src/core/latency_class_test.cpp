#include "core/latency_class.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota {
namespace {

TEST(LatencyClass, IsReadFromTheWordsThatItIsWrittenAs) {
  for (const LatencyClass each : {LatencyClass::kNormal, LatencyClass::kInteractive}) {
    EXPECT_EQ(parse_latency_class(to_string(each)), each);
  }
  EXPECT_FALSE(parse_latency_class("Interactive"));
  EXPECT_FALSE(parse_latency_class(""));
}

TEST(LatencyClass, IsInteractiveOnlyBesideOthersAndAnErrorSaysWhatToAskForInstead) {
  using ::testing::HasSubstr;
  const auto refusal = [](const LatencyTerms& terms) {
    EXPECT_TRUE(check_latency(LatencyClass::kNormal, terms));
    const auto checked = check_latency(LatencyClass::kInteractive, terms);
    return checked ? "" : checked.error().message;
  };
  EXPECT_EQ(refusal({.shares_gpus = true}), "");
  EXPECT_THAT(refusal({}), HasSubstr("add --memory 8G or --swap"));
  EXPECT_THAT(refusal({.shares_gpus = true, .filler = true}), HasSubstr("a filler cannot be"));
}

}  // namespace
}  // namespace gpurota
