#include "core/lease_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota {
namespace {

std::string mistake(std::string_view name) {
  const auto checked = check_lease_name(name);
  return checked ? "" : checked.error().message;
}

TEST(LeaseName, AllowsOnlyPlainCharacters) {
  for (const char* name : {"train7", "a", "My.run_2-b", "Lab", "R2D2", "L7x"})
    EXPECT_EQ(mistake(name), "");
  EXPECT_EQ(mistake(std::string(kMostLeaseName, 'a')), "");
  for (const char* name : {"", "7up", "-a", "a b", "a/b", "\xc3\xa9t\xc3\xa9", "a\n"}) {
    EXPECT_THAT(mistake(name), ::testing::HasSubstr("with a letter first")) << name;
  }
  EXPECT_NE(mistake(std::string(kMostLeaseName + 1, 'a')), "");
}

TEST(LeaseName, IsDifferentFromEveryId) {
  for (const char* name : {"L7", "l12", "R1", "r9"})
    EXPECT_THAT(mistake(name), ::testing::HasSubstr("looks like the id"));
}

}  // namespace
}  // namespace gpurota
