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

TEST(Nearest, FindsOptionsByPrefixOrTypingError) {
  const std::vector<std::string_view> names = {"--memory", "--memory-threshold", "--note"};
  const auto meant = [&](std::string_view word) {
    return did_you_mean(meant_names(word, names), "");
  };
  EXPECT_EQ(meant("--mem"), ": did you mean --memory?");
  EXPECT_EQ(meant("--memroy"), ": did you mean --memory?");
  EXPECT_EQ(meant("--n"), "") << "too short";
  EXPECT_EQ(did_you_mean({"release", "cancel"}, "'"), ": did you mean 'release' or 'cancel'?");
}

}  // namespace
}  // namespace gpurota
