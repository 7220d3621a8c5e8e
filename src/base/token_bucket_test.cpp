#include "base/token_bucket.h"

#include <gtest/gtest.h>

namespace gpurota {
namespace {

using namespace std::chrono_literals;

constexpr TokenRate kRate{4, 1h};
constexpr TokenBucket::Time kStart{1000h};

int take_all(TokenBucket& bucket, TokenBucket::Time now, const TokenRate& rate = kRate) {
  int taken = 0;
  while (taken < 1000 && bucket.take(now, rate)) ++taken;
  return taken;
}

TEST(TokenBucket, AllowsABurstThenAnEvenRate) {
  TokenBucket bucket;
  EXPECT_EQ(take_all(bucket, kStart), 4);
  EXPECT_FALSE(bucket.take(kStart + 14min, kRate));
  EXPECT_EQ(take_all(bucket, kStart + 15min), 1);
  EXPECT_EQ(take_all(bucket, kStart + 45min), 2);
}

TEST(TokenBucket, NeverHoldsMoreThanTheMostTokens) {
  TokenBucket bucket;
  take_all(bucket, kStart);
  EXPECT_EQ(bucket.spent(kStart + 24h, kRate), 0);
  EXPECT_EQ(take_all(bucket, kStart + 24h), 4);
}

TEST(TokenBucket, TellsWhenTheNextTokenIsAvailable) {
  TokenBucket bucket;
  EXPECT_LE(bucket.next(kRate), kStart);
  take_all(bucket, kStart);
  const TokenBucket::Time when = bucket.next(kRate);
  EXPECT_GE(when, kStart + 15min);
  EXPECT_LE(when, kStart + 15min + 1ms);
  EXPECT_TRUE(bucket.take(when, kRate));
  constexpr TokenRate kThird{3, 1s};
  TokenBucket other;
  take_all(other, kStart, kThird);
  EXPECT_TRUE(other.take(other.next(kThird), kThird)) << "also where the wait is no whole number";
}

TEST(TokenBucket, ChangedRateKeepsCountOfTokensTaken) {
  TokenBucket bucket;
  take_all(bucket, kStart);
  EXPECT_EQ(take_all(bucket, kStart, {6, 1h}), 2);
  EXPECT_EQ(take_all(bucket, kStart, kRate), 0);
}

}  // namespace
}  // namespace gpurota
