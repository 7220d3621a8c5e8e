// How many notices a user gets.
#include "daemon/notices/notice_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;
using Answer = NoticeRates::Answer;
using ::testing::HasSubstr;

constexpr int kMost = 4;  // an hour

class NoticeRatesTest : public ::testing::Test {
 protected:
  Answer admit(uid_t user, NoticeKind kind = NoticeKind::kReleased, std::string text = "x") {
    return rates.admit({.kind = kind, .to = user, .text = std::move(text)}, now, kMost);
  }

  NoticeRates rates;
  TimePoint now{1000h};
};

TEST_F(NoticeRatesTest, FloodIsSentUpToTheLimitAndThenAsOneNotice) {
  for (int i = 0; i < kMost; ++i) EXPECT_EQ(admit(1), Answer::kSend);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(admit(1, NoticeKind::kReleased, "number " + std::to_string(i)), Answer::kLater);
  }
  EXPECT_TRUE(rates.due(now, kMost).empty());
  const auto when = rates.next_due(kMost);
  ASSERT_TRUE(when);
  EXPECT_GE(*when, now + 15min) << "4 an hour";
  now = *when;
  const auto due = rates.due(now, kMost);
  ASSERT_EQ(due.size(), 1u);
  EXPECT_THAT(due[0].text, HasSubstr("1000 notices"));
  EXPECT_THAT(due[0].text, HasSubstr("number 999"));
  EXPECT_FALSE(rates.next_due(kMost));
}

TEST_F(NoticeRatesTest, SingleHeldBackNoticeIsSentUnchanged) {
  for (int i = 0; i < kMost; ++i) admit(1);
  admit(1, NoticeKind::kReleased, "late");
  now += 1h;
  const auto due = rates.due(now, kMost);
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].text, "late");
}

TEST_F(NoticeRatesTest, AFloodKeepsBackNeitherOtherKindsNorOtherUsers) {
  for (int i = 0; i < 100; ++i) admit(1, NoticeKind::kFinding);
  EXPECT_EQ(admit(1, NoticeKind::kEndsSoon), Answer::kSend);
  EXPECT_EQ(admit(2, NoticeKind::kFinding), Answer::kSend);
}

TEST_F(NoticeRatesTest, LaterNoticesQueueBehindHeldBackOnes) {
  for (int i = 0; i <= kMost; ++i) admit(1);
  now += 1h;
  EXPECT_EQ(admit(1), Answer::kLater) << "it is told with the others";
}

TEST_F(NoticeRatesTest, UsersAreBoundedAndIdleOnesAreRemoved) {
  for (uid_t user = 0; user < NoticeRates::kMost; ++user) EXPECT_EQ(admit(user), Answer::kSend);
  EXPECT_EQ(admit(1000000), Answer::kNever);
  now += 2h;
  EXPECT_EQ(admit(1000000), Answer::kSend);
}

}  // namespace
}  // namespace gpurota::daemon
