#include "daemon/users/rate_limiter.h"

#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;

RateLimiter::Key key(uid_t uid, const std::string& operation) {
  return {uid, operation, "NoGpu", std::nullopt};
}

TEST(RateLimiter, FirstMessagePassesAndOthersAreCounted) {
  RateLimiter limiter;
  const TimePoint now{};
  EXPECT_TRUE(limiter.admit(key(1000, "Acquire"), now));
  for (int i = 0; i < 500; ++i) EXPECT_FALSE(limiter.admit(key(1000, "Acquire"), now));
  EXPECT_TRUE(limiter.take_counts(now + 9s).empty());
  const auto counts = limiter.take_counts(now + 10s);
  ASSERT_EQ(counts.size(), 1u);
  EXPECT_EQ(counts[0].count, 500u);
  EXPECT_TRUE(limiter.take_counts(now + 20s).empty());
  EXPECT_FALSE(limiter.next_end());
}

TEST(RateLimiter, SingleMessageHasNoCount) {
  RateLimiter limiter;
  EXPECT_TRUE(limiter.admit(key(1000, "Acquire"), TimePoint{}));
  EXPECT_TRUE(limiter.take_counts(TimePoint{} + 1min).empty());
}

TEST(RateLimiter, AsManyMessagesPassAsTheCallerAllows) {
  RateLimiter limiter;
  int passed = 0;
  for (int i = 0; i < 100; ++i) passed += limiter.admit(key(1000, "lease made"), TimePoint{}, 20);
  EXPECT_EQ(passed, 20);
  const auto counts = limiter.take_counts(TimePoint{} + 10s);
  ASSERT_EQ(counts.size(), 1u);
  EXPECT_EQ(counts[0].count, 80u);
}

TEST(RateLimiter, TooManyKindsOfAUserAreCountedAsOne) {
  RateLimiter limiter;
  int passed = 0;
  for (int i = 0; i < 10000; ++i) {
    passed += limiter.admit(key(1000, "operation" + std::to_string(i)), TimePoint{});
  }
  EXPECT_EQ(passed, static_cast<int>(RateLimiter::kMostPerUser) + 1);
  EXPECT_TRUE(limiter.admit(key(1001, "Acquire"), TimePoint{})) << "another user's is lost";
}

}  // namespace
}  // namespace gpurota::daemon
