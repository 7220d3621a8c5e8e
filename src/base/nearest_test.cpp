#include "base/nearest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota {
namespace {

TEST(Nearest, CountsLettersLeftOutAddedChangedAndSwapped) {
  EXPECT_EQ(slips("memory", "memory"), 0u);
  EXPECT_EQ(slips("memry", "memory"), 1u);
  EXPECT_EQ(slips("memmory", "memory"), 1u);
  EXPECT_EQ(slips("mempry", "memory"), 1u);
  EXPECT_EQ(slips("meomry", "memory"), 1u);
}

TEST(Nearest, NamesTheOneThatWasMeant) {
  EXPECT_EQ(nearest_name("alicce", {"alice", "bob"}), "alice");
  EXPECT_EQ(nearest_name("alic", {"alica", "alice"}), "") << "there are two";
  EXPECT_EQ(nearest_name("ls", {"ps"}), "");
  EXPECT_EQ(nearest_name("zebra", {"alice"}), "");
  EXPECT_EQ(nearest_name(std::string(100000, 'a'), {std::string(100001, 'a')}), "");
}

}  // namespace
}  // namespace gpurota
