#include "kube/dra/claim_review.h"

#include <gtest/gtest.h>

namespace gpurota::kube {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class AClaimReview : public ::testing::Test {
 protected:
  std::size_t due(bool is_used = false) {
    return review_.due({{{"u1", "default", "train"}, "node-1", "p", is_used}}, now_).size();
  }
  // One round: the time passes, the claim is looked up, the answer comes.
  bool round(bool is_there) {
    now_ += kPause;
    EXPECT_EQ(due(), 1u);
    return review_.has_gone("u1", is_there);
  }

  // No claim was stored by an earlier run.
  void SetUp() override { EXPECT_TRUE(review_.due({}, now_).empty()); }

  static constexpr Duration kPause = minutes(1);
  ClaimReview review_{kPause};
  TimePoint now_{minutes(60)};
};

TEST_F(AClaimReview, AsksOnceAPauseAndNotAtEveryCall) {
  EXPECT_EQ(due(), 0u);
  now_ += kPause;
  EXPECT_EQ(due(), 1u);
  now_ += seconds(2);
  EXPECT_EQ(due(), 0u);
}

TEST_F(AClaimReview, AsksAtOnceForStoredClaims) {
  ClaimReview after_restart(kPause);
  const std::vector<UsedClaim> stored = {{{"u1", "default", "train"}, "node-1", "p", true}};
  EXPECT_EQ(after_restart.due(stored, now_).size(), 1u);
  EXPECT_TRUE(after_restart.due(stored, now_).empty());
}

TEST_F(AClaimReview, AsksMoreRarelyForUsedClaimsAndNeverGivesThemUp) {
  due(true);
  now_ += kPause;
  EXPECT_EQ(due(true), 0u);
  for (int i = 0; i < 4; ++i) {
    now_ += ClaimReview::kUsedPauses * kPause;
    EXPECT_EQ(due(true), 1u);
    EXPECT_FALSE(review_.has_gone("u1", false));
  }
}

TEST_F(AClaimReview, AsksAtOnceWhenKubeletWasStarted) {
  EXPECT_EQ(due(true), 0u);
  review_.on_kubelet();
  EXPECT_EQ(due(true), 1u);
  EXPECT_EQ(due(true), 0u);
}

TEST_F(AClaimReview, GivesUpAClaimThatIsGoneTwiceInARow) {
  due();
  EXPECT_FALSE(round(false));
  EXPECT_FALSE(round(true)) << "the first was a mistake of the API server's";
  EXPECT_FALSE(round(false));
  EXPECT_TRUE(round(false));
}

TEST_F(AClaimReview, IdleTimeStartsAnewAfterUse) {
  due();
  EXPECT_FALSE(round(false));
  due(true);
  EXPECT_FALSE(round(false));
}

TEST_F(AClaimReview, AnAnswerForAClaimThatIsOverChangesNothing) {
  due();
  EXPECT_FALSE(review_.has_gone("u2", false));
}

TEST_F(AClaimReview, AsksForAFewAtOnce) {
  std::vector<UsedClaim> many;
  for (int i = 0; i < 20; ++i) {
    many.push_back({{"u" + std::to_string(i), "default", "train"}, "node-1", "p"});
  }
  EXPECT_TRUE(review_.due(many, now_).empty());
  now_ += kPause;
  EXPECT_EQ(review_.due(many, now_).size(), ClaimReview::kMost);
  EXPECT_EQ(review_.due(many, now_).size(), ClaimReview::kMost);
  EXPECT_EQ(review_.due(many, now_).size(), 20 - 2 * ClaimReview::kMost);
}

}  // namespace
}  // namespace gpurota::kube
