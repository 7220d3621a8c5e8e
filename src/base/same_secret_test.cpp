#include "base/same_secret.h"

#include <gtest/gtest.h>

namespace gpurota {
namespace {

TEST(SameSecret, WholeSecretMatches) {
  EXPECT_TRUE(is_same_secret("0af3", "0af3"));
  for (const char* presented : {"", "0af", "0af33", "1af3", "0af4", "0AF3"}) {
    EXPECT_FALSE(is_same_secret("0af3", presented)) << presented;
  }
}

TEST(SameSecret, EmptySecretMatchesNothing) { EXPECT_FALSE(is_same_secret("", "")); }

}  // namespace
}  // namespace gpurota
