#include "sys/secret.h"

#include <gtest/gtest.h>

#include <set>

namespace gpurota::sys {
namespace {

TEST(RandomHex, HasTheLengthAskedAndOnlyHexDigits) {
  for (const std::size_t digits : {0u, 1u, 31u, 32u, 500u}) {
    const auto hex = random_hex(digits);
    ASSERT_TRUE(hex);
    EXPECT_EQ(hex->size(), digits);
    EXPECT_EQ(hex->find_first_not_of("0123456789abcdef"), hex->npos);
  }
}

TEST(RandomHex, DoesNotRepeat) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(seen.insert(*random_hex(32)).second);
}

}  // namespace
}  // namespace gpurota::sys
