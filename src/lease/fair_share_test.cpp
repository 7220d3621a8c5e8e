#include "lease/fair_share.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace gpurota::lease {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::seconds kWeek = 168h;
const WallTime kThen{1000h};

Claim claim(std::uint64_t id, std::chrono::seconds used, int weight = 1) {
  return {RequestId{id}, {used, weight, {}, {}, 1}, false};
}

Claim of_group(Claim claim, const char* group, std::chrono::seconds used, int weight) {
  claim.share.group = group;
  claim.share.group_used = used;
  claim.share.group_weight = weight;
  return claim;
}

TEST(FairShare, TheUserWhoHasUsedLessForTheirWeightGoesFirst) {
  EXPECT_TRUE(goes_before(claim(2, 3h), claim(1, 41h)));
  EXPECT_FALSE(goes_before(claim(1, 41h), claim(2, 3h)));
  EXPECT_TRUE(goes_before(claim(2, 41h, 20), claim(1, 3h))) << "41 / 20 is less than 3";
}

TEST(FairShare, EarlierRequestGoesFirstAtEqualUse) {
  EXPECT_TRUE(goes_before(claim(1, 0s), claim(2, 0s)));
  EXPECT_TRUE(goes_before(claim(1, 4h, 2), claim(2, 2h)));
  EXPECT_FALSE(goes_before(claim(2, 2h), claim(1, 4h, 2)));
}

TEST(FairShare, AGroupsUseCountsBeforeThatOfItsMembers) {
  const Claim student = of_group(claim(1, 0s), "students", 100h, 1);
  const Claim staff = of_group(claim(2, 50h), "staff", 100h, 2);
  EXPECT_TRUE(goes_before(staff, student));
  const Claim other = of_group(claim(3, 1h), "students", 100h, 1);
  EXPECT_TRUE(goes_before(student, other)) << "in a group by the use of each";
  EXPECT_TRUE(goes_before(claim(4, 49h), staff)) << "who is in no group stands alone";
}

TEST(FairShare, NoRequestPassesOneThatWaitedTooLong) {
  Claim late = claim(5, 1000h);
  late.overdue = true;
  EXPECT_TRUE(goes_before(late, claim(1, 0s)));
  Claim later = claim(6, 0s);
  later.overdue = true;
  EXPECT_TRUE(goes_before(late, later)) << "of several the first";
}

TEST(FairShare, ComparisonIsAStrictWeakOrder) {
  std::mt19937_64 random(7);
  const auto pick = [&](int most) {
    return static_cast<int>(random() % static_cast<unsigned>(most));
  };
  std::vector<Claim> claims;
  for (std::uint64_t id = 1; id <= 60; ++id) {
    Claim each = claim(id, std::chrono::seconds(pick(4)), 1 + pick(3));
    if (pick(2) == 0)
      each = of_group(each, pick(2) == 0 ? "a" : "b", std::chrono::seconds(pick(4)), 1 + pick(3));
    each.overdue = pick(10) == 0;
    claims.push_back(each);
  }
  for (const Claim& a : claims) {
    for (const Claim& b : claims) {
      EXPECT_EQ(goes_before(a, b) + goes_before(b, a), a.id == b.id ? 0 : 1);
      for (const Claim& c : claims) {
        EXPECT_TRUE(!goes_before(a, b) || !goes_before(b, c) || goes_before(a, c));
      }
    }
  }
}

TEST(Decay, HalfIsLeftAfterAHalfLife) {
  EXPECT_DOUBLE_EQ(decayed(8, kWeek, kWeek), 4);
  EXPECT_DOUBLE_EQ(decayed(8, 3 * kWeek, kWeek), 1);
  EXPECT_DOUBLE_EQ(decayed(8, -1h, kWeek), 8) << "a clock that was set back";
}

TEST(Decay, LongUseDecaysLikeTheSumOfItsParts) {
  const WallTime now = kThen + 500h;
  double parts = 0;
  for (int i = 0; i < 100; ++i) {
    parts += decayed(1, kThen + i * 1h, kThen + (i + 1) * 1h, now, kWeek);
  }
  EXPECT_NEAR(decayed(100, kThen, kThen + 100h, now, kWeek), parts, 1e-9);
  EXPECT_LT(decayed(100, kThen, kThen + 100h, now, kWeek),
            decayed(100, now - (kThen + 100h), kWeek));
}

TEST(Decay, InstantUseCountsFromItsEnd) {
  EXPECT_DOUBLE_EQ(decayed(8, kThen, kThen, kThen + kWeek, kWeek), 4);
}

}  // namespace
}  // namespace gpurota::lease
