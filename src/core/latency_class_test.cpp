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

TEST(LatencyClass, OnlyASliceCanBeInteractiveAndAnErrorSaysWhatToAskForInstead) {
  using ::testing::HasSubstr;
  const auto refusal = [](const LatencyTerms& terms) {
    EXPECT_TRUE(check_latency(LatencyClass::kNormal, terms));
    const auto checked = check_latency(LatencyClass::kInteractive, terms);
    return checked ? "" : checked.error().message;
  };
  EXPECT_EQ(refusal({.limited = true}), "");
  EXPECT_THAT(refusal({}), HasSubstr("a whole GPU: add --memory 8G"));
  EXPECT_THAT(refusal({.limited = true, .swap = true}), HasSubstr("leave out --swap and give"));
  EXPECT_THAT(refusal({.limited = true, .filler = true}), HasSubstr("a filler cannot be"));
}

}  // namespace
}  // namespace gpurota
