#include "jobs/chain.h"

#include <gtest/gtest.h>

namespace gpurota::jobs {
namespace {

Verdict after_success(Phase phase, bool ran = true) {
  return verdict_of(Link::kSuccess, Before{phase, ran, false});
}
Verdict after_end(Phase phase, bool ran = true) {
  return verdict_of(Link::kEnd, Before{phase, ran, false});
}

TEST(Chain, WaitsForJobsThatRunOrWillRun) {
  for (const Phase phase :
       {Phase::kWaiting, Phase::kRunning, Phase::kStopping, Phase::kBackingOff, Phase::kChained}) {
    EXPECT_EQ(after_success(phase), Verdict::kWaits) << to_string(phase);
    EXPECT_EQ(after_end(phase), Verdict::kWaits) << to_string(phase);
  }
}

TEST(Chain, StartsAfterASuccess) {
  EXPECT_EQ(after_success(Phase::kFinished), Verdict::kMet);
  EXPECT_EQ(after_end(Phase::kFinished), Verdict::kMet);
}

TEST(Chain, IsCancelledWhenNoSuccessIsPossible) {
  for (const Phase phase : {Phase::kFailed, Phase::kCancelled, Phase::kStopped}) {
    EXPECT_EQ(after_success(phase), Verdict::kNever) << to_string(phase);
    EXPECT_EQ(after_end(phase), Verdict::kMet) << to_string(phase);
  }
}

TEST(Chain, WaitsForAJobThatHasNeverRun) {
  EXPECT_EQ(after_success(Phase::kStopped, false), Verdict::kWaits);
  EXPECT_EQ(after_end(Phase::kStopped, false), Verdict::kWaits);
}

TEST(Chain, RemovedJobHasNoSuccessAndEndsWithItsRun) {
  const Before going{Phase::kStopping, true, true};
  EXPECT_EQ(verdict_of(Link::kSuccess, going), Verdict::kNever);
  EXPECT_EQ(verdict_of(Link::kEnd, going), Verdict::kWaits);
  EXPECT_EQ(verdict_of(Link::kSuccess, std::nullopt), Verdict::kNever);
  EXPECT_EQ(verdict_of(Link::kEnd, std::nullopt), Verdict::kMet);
}

}  // namespace
}  // namespace gpurota::jobs
