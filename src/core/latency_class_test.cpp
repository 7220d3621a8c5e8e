#include "core/latency_class.h"

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

}  // namespace
}  // namespace gpurota
