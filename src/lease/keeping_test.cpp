#include "lease/keeping.h"

#include <gtest/gtest.h>

namespace gpurota::lease {
namespace {

using std::chrono::minutes;
constexpr TimePoint kStart{std::chrono::hours(10)};
constexpr Duration kMost = minutes(60);

TEST(Keeping, ItLastsSoLongThenOthersMayForAsLongThenAgain) {
  Keeping keeping;
  keeping.look(true, kMost, kStart);
  EXPECT_TRUE(keeping.keeps());
  EXPECT_EQ(keeping.changes_at(kMost), kStart + minutes(60));
  keeping.look(true, kMost, kStart + minutes(60));
  EXPECT_FALSE(keeping.keeps());
  EXPECT_EQ(keeping.changes_at(kMost), kStart + minutes(120));
  keeping.look(true, kMost, kStart + minutes(119));
  EXPECT_FALSE(keeping.keeps());
  keeping.look(true, kMost, kStart + minutes(120));
  EXPECT_TRUE(keeping.keeps());
  EXPECT_EQ(keeping.changes_at(kMost), kStart + minutes(180));
}

TEST(Keeping, OnlyTheTimeCountsInWhichSomethingIsFree) {
  Keeping keeping;
  keeping.look(true, kMost, kStart);
  keeping.look(false, kMost, kStart + minutes(50));
  EXPECT_FALSE(keeping.changes_at(kMost));
  keeping.look(true, kMost, kStart + minutes(500));
  EXPECT_TRUE(keeping.keeps());
  EXPECT_EQ(keeping.changes_at(kMost), kStart + minutes(510));
}

TEST(Keeping, ASiteMayKeepThemForEver) {
  Keeping keeping;
  keeping.look(true, Duration::zero(), kStart);
  keeping.look(true, Duration::zero(), kStart + std::chrono::hours(1000));
  EXPECT_TRUE(keeping.keeps());
  EXPECT_FALSE(keeping.changes_at(Duration::zero()));
}

// A reload of the configuration.
TEST(Keeping, ABoundThatIsTakenAwayHoldsNoLonger) {
  Keeping keeping;
  keeping.look(true, kMost, kStart);
  keeping.look(true, kMost, kStart + minutes(60));
  keeping.look(true, Duration::zero(), kStart + minutes(61));
  EXPECT_TRUE(keeping.keeps());
}

}  // namespace
}  // namespace gpurota::lease
