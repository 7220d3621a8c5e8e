#include "daemon/users/repeats.h"

#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;

Repeats::Key key(uid_t uid, const std::string& operation) {
  return {uid, operation, "NoGpu", std::nullopt};
}

TEST(Repeats, TheFirstIsToldAndTheOthersAreCounted) {
  Repeats repeats;
  const TimePoint now{};
  EXPECT_TRUE(repeats.is_told(key(1000, "Acquire"), now));
  for (int i = 0; i < 500; ++i) EXPECT_FALSE(repeats.is_told(key(1000, "Acquire"), now));
  EXPECT_TRUE(repeats.due(now + 9s).empty());
  const auto repeated = repeats.due(now + 10s);
  ASSERT_EQ(repeated.size(), 1u);
  EXPECT_EQ(repeated[0].count, 500u);
  EXPECT_TRUE(repeats.due(now + 20s).empty());
  EXPECT_FALSE(repeats.next_due());
}

TEST(Repeats, OneThatIsNotRepeatedIsToldOnce) {
  Repeats repeats;
  EXPECT_TRUE(repeats.is_told(key(1000, "Acquire"), TimePoint{}));
  EXPECT_TRUE(repeats.due(TimePoint{} + 1min).empty());
}

TEST(Repeats, TheFirstFewAreToldWhereThatIsWanted) {
  Repeats repeats;
  int told = 0;
  for (int i = 0; i < 100; ++i) told += repeats.is_told(key(1000, "lease made"), TimePoint{}, 20);
  EXPECT_EQ(told, 20);
  const auto repeated = repeats.due(TimePoint{} + 10s);
  ASSERT_EQ(repeated.size(), 1u);
  EXPECT_EQ(repeated[0].count, 80u);
}

TEST(Repeats, AFloodOfKindsIsOneKind) {
  Repeats repeats;
  int told = 0;
  for (int i = 0; i < 10000; ++i) {
    told += repeats.is_told(key(1000, "operation" + std::to_string(i)), TimePoint{});
  }
  EXPECT_EQ(told, static_cast<int>(Repeats::kMostPerUser) + 1);
  EXPECT_TRUE(repeats.is_told(key(1001, "Acquire"), TimePoint{})) << "another user's is lost";
}

}  // namespace
}  // namespace gpurota::daemon
