#include "daemon/users/user_turns.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpurota::daemon {
namespace {

constexpr uid_t kMallory = 1000, kAlice = 1001;

class UserTurnsTest : public ::testing::Test {
 protected:
  // Requests of `user` from `from` on come in the order of their numbers, as in a round of the
  // loop.
  void come(uid_t user, int from, int count) {
    for (int key = from; key < from + count; ++key) {
      if (turns.goes_first(user, now)) {
        served.push_back(key);
      } else {
        turns.add(user, key);
      }
    }
  }
  void serve(int count) {
    for (int i = 0; i < count; ++i) {
      const auto turn = turns.next();
      if (!turn) return;
      served.push_back(turn->key);
      turns.charge(turn->user, std::chrono::microseconds(20));
    }
  }

  UserTurns<int> turns;
  std::vector<int> served;
  TimePoint now{std::chrono::hours(1)};
};

TEST_F(UserTurnsTest, ManyProgramsOfOneUserDelayAnotherByAFewCalls) {
  come(kMallory, 0, 250);
  come(kAlice, 1000, 1);
  EXPECT_EQ(served.size(), std::size_t{UserTurns<int>::kAtOnce + 1});
  EXPECT_EQ(served.back(), 1000);
}

TEST_F(UserTurnsTest, WhenBothSendManyTheirTurnsAlternate) {
  come(kMallory, 0, 250);
  come(kAlice, 1000, 10);
  served.clear();
  serve(12);
  EXPECT_EQ(std::count_if(served.begin(), served.end(), [](int key) { return key >= 1000; }), 6);
}

TEST_F(UserTurnsTest, AUserWhoSendsRarelyNeverWaits) {
  for (int i = 0; i < 100; ++i) {
    come(kMallory, 1000 * i, 50);
    come(kAlice, -1 - i, 1);
    now += UserTurns<int>::kWindow;
  }
  EXPECT_EQ(std::count_if(served.begin(), served.end(), [](int key) { return key < 0; }), 100);
}

TEST_F(UserTurnsTest, LongMessagesOfOneUserDelayAnotherByOneOfThem) {
  // In one round of the loop, in which time goes on.
  constexpr Duration kLong = std::chrono::milliseconds(2);
  int at_once = 0;
  for (int key = 0; key < 20; ++key) {
    if (!turns.goes_first(kMallory, now)) continue;
    ++at_once;
    turns.went_first(kMallory, now, now + kLong);
    now += kLong;
  }
  EXPECT_EQ(at_once, 1);
  EXPECT_TRUE(turns.goes_first(kAlice, now));
  now += UserTurns<int>::kRest * kLong;
  EXPECT_TRUE(turns.goes_first(kMallory, now));
}

TEST_F(UserTurnsTest, ShortOnesDoNotMakeTheirUserRest) {
  for (int key = 0; key < UserTurns<int>::kAtOnce; ++key) {
    EXPECT_TRUE(turns.goes_first(kAlice, now));
    turns.went_first(kAlice, now, now + std::chrono::microseconds(20));
    now += std::chrono::microseconds(20);
  }
  EXPECT_FALSE(turns.goes_first(kAlice, now));
}

TEST_F(UserTurnsTest, NothingThatWaitedIsLost) {
  come(kMallory, 0, 250);
  while (!turns.empty()) serve(1);
  EXPECT_EQ(served.size(), 250u);
}

}  // namespace
}  // namespace gpurota::daemon
