#include "daemon/users/burst_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpurota::daemon {
namespace {

constexpr uid_t kMallory = 1000, kAlice = 1001;

class BurstQueueTest : public ::testing::Test {
 protected:
  // Lets `count` requests of `user` arrive, numbered beginning at `from`, as in one round of the
  // loop.
  void come(uid_t user, int from, int count) {
    for (int key = from; key < from + count; ++key) {
      if (queue.admit_at_once(user, now)) {
        served.push_back(key);
      } else {
        queue.add(user, key);
      }
    }
  }
  void serve(int count) {
    for (int i = 0; i < count; ++i) {
      const auto entry = queue.next();
      if (!entry) return;
      served.push_back(entry->key);
      queue.charge(entry->user, std::chrono::microseconds(20));
    }
  }

  BurstQueue<int> queue;
  std::vector<int> served;
  TimePoint now{std::chrono::hours(1)};
};

TEST_F(BurstQueueTest, BurstOfOneUserDelaysAnotherByAFewRequests) {
  come(kMallory, 0, 250);
  come(kAlice, 1000, 1);
  EXPECT_EQ(served.size(), std::size_t{BurstQueue<int>::kAtOnce + 1});
  EXPECT_EQ(served.back(), 1000);
}

TEST_F(BurstQueueTest, UsersWithManyWaitingRequestsAlternate) {
  come(kMallory, 0, 250);
  come(kAlice, 1000, 10);
  served.clear();
  serve(12);
  EXPECT_EQ(std::count_if(served.begin(), served.end(), [](int key) { return key >= 1000; }), 6);
}

TEST_F(BurstQueueTest, UserWhoSendsRarelyNeverWaits) {
  for (int i = 0; i < 100; ++i) {
    come(kMallory, 1000 * i, 50);
    come(kAlice, -1 - i, 1);
    now += BurstQueue<int>::kWindow;
  }
  EXPECT_EQ(std::count_if(served.begin(), served.end(), [](int key) { return key < 0; }), 100);
}

TEST_F(BurstQueueTest, SlowRequestsOfOneUserDelayAnotherByOne) {
  // All in one round of the loop, while time passes.
  constexpr Duration kLong = std::chrono::milliseconds(2);
  int at_once = 0;
  for (int key = 0; key < 20; ++key) {
    if (!queue.admit_at_once(kMallory, now)) continue;
    ++at_once;
    queue.charge_at_once(kMallory, now, now + kLong);
    now += kLong;
  }
  EXPECT_EQ(at_once, 1);
  EXPECT_TRUE(queue.admit_at_once(kAlice, now));
  now += BurstQueue<int>::kPenalty * kLong;
  EXPECT_TRUE(queue.admit_at_once(kMallory, now));
}

TEST_F(BurstQueueTest, ShortRequestsCauseNoPenalty) {
  for (int key = 0; key < BurstQueue<int>::kAtOnce; ++key) {
    EXPECT_TRUE(queue.admit_at_once(kAlice, now));
    queue.charge_at_once(kAlice, now, now + std::chrono::microseconds(20));
    now += std::chrono::microseconds(20);
  }
  EXPECT_FALSE(queue.admit_at_once(kAlice, now));
}

TEST_F(BurstQueueTest, EveryWaitingRequestIsServed) {
  come(kMallory, 0, 250);
  while (!queue.empty()) serve(1);
  EXPECT_EQ(served.size(), 250u);
}

}  // namespace
}  // namespace gpurota::daemon
