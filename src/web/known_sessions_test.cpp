#include "web/known_sessions.h"

#include <gtest/gtest.h>

namespace gpurota::web {
namespace {

using namespace std::chrono_literals;
using Call = KnownSessions::Call;

constexpr uid_t kAlice = 1001, kMallory = 1003;
const KnownSessions::Clock::time_point kStart{1h};

TEST(KnownSessions, RepeatedSignInsOfOneUserSignNobodyElseOut) {
  KnownSessions sessions;
  sessions.add("alice's", kAlice, kStart);
  for (int i = 0; i < 10000; ++i) sessions.add(std::to_string(i), kMallory, kStart + 1s);
  EXPECT_EQ(sessions.take_call("alice's", kStart + 2s), Call::kTaken);
  EXPECT_EQ(sessions.take_call("9999", kStart + 2s), Call::kTaken);
  EXPECT_EQ(sessions.take_call("0", kStart + 2s), Call::kUnknown);
  EXPECT_EQ(sessions.size(), 1 + KnownSessions::kMostOfUser);
}

TEST(KnownSessions, FullTableRemovesASessionOfTheUserWithMost) {
  KnownSessions sessions;
  sessions.add("alice's", kAlice, kStart);
  for (int i = 0; i < 10000; ++i) {
    const auto user = static_cast<uid_t>(100000 + i / 20);
    sessions.add(std::to_string(i), user, kStart + 1s);
  }
  EXPECT_LE(sessions.size(), KnownSessions::kMost);
  EXPECT_EQ(sessions.take_call("alice's", kStart + 2s), Call::kTaken);
  sessions.add("alice's other", kAlice, kStart + 2s);
  EXPECT_EQ(sessions.take_call("alice's other", kStart + 2s), Call::kTaken);
}

TEST(KnownSessions, LeastRecentlyUsedSessionOfTheUserIsRemoved) {
  KnownSessions sessions;
  for (std::size_t i = 0; i < KnownSessions::kMostOfUser; ++i) {
    sessions.add(std::to_string(i), kAlice, kStart + i * 1s);
  }
  EXPECT_EQ(sessions.take_call("0", kStart + 1h), Call::kTaken);
  sessions.add("new", kAlice, kStart + 1h);
  EXPECT_EQ(sessions.take_call("0", kStart + 1h), Call::kTaken);
  EXPECT_EQ(sessions.take_call("1", kStart + 1h), Call::kUnknown);
}

TEST(KnownSessions, CallRateOfASessionIsLimited) {
  KnownSessions sessions;
  sessions.add("s", kAlice, kStart);
  for (int i = 0; i < KnownSessions::kCallsAtOnce; ++i) {
    EXPECT_EQ(sessions.take_call("s", kStart), Call::kTaken);
  }
  EXPECT_EQ(sessions.take_call("s", kStart), Call::kTooFast);
  EXPECT_EQ(sessions.take_call("s", kStart + 100ms), Call::kTaken);
}

}  // namespace
}  // namespace gpurota::web
