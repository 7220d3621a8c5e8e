#include "daemon/denials.h"

#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;

Denials::Key key(uid_t uid, const std::string& operation) {
  return {uid, operation, "NoGpu", std::nullopt};
}

TEST(Denials, TheFirstIsToldAndTheOthersAreCounted) {
  Denials denials;
  const TimePoint now{};
  EXPECT_TRUE(denials.first(key(1000, "Acquire"), now));
  for (int i = 0; i < 500; ++i) EXPECT_FALSE(denials.first(key(1000, "Acquire"), now));
  EXPECT_TRUE(denials.due(now + 9s).empty());
  const auto repeated = denials.due(now + 10s);
  ASSERT_EQ(repeated.size(), 1u);
  EXPECT_EQ(repeated[0].count, 500u);
  EXPECT_TRUE(denials.due(now + 20s).empty());
  EXPECT_FALSE(denials.next_due());
}

TEST(Denials, OneThatIsNotRepeatedIsToldOnce) {
  Denials denials;
  EXPECT_TRUE(denials.first(key(1000, "Acquire"), TimePoint{}));
  EXPECT_TRUE(denials.due(TimePoint{} + 1min).empty());
}

TEST(Denials, AFloodOfKindsIsOneKind) {
  Denials denials;
  int told = 0;
  for (int i = 0; i < 10000; ++i) {
    told += denials.first(key(1000, "operation" + std::to_string(i)), TimePoint{});
  }
  EXPECT_EQ(told, static_cast<int>(Denials::kMostPerUser) + 1);
  EXPECT_TRUE(denials.first(key(1001, "Acquire"), TimePoint{})) << "another user's is lost";
}

}  // namespace
}  // namespace gpurota::daemon
