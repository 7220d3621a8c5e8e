#include "daemon/users/fair_queue.h"

#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

using std::chrono::milliseconds;

constexpr uid_t kMallory = 1, kAlice = 2, kBob = 3;

TEST(FairQueue, ServesRequestsOfAUserInTheOrderOfArrival) {
  FairQueue<int> queue;
  EXPECT_TRUE(queue.empty());
  EXPECT_FALSE(queue.next());
  for (int key = 1; key <= 3; ++key) queue.add(kAlice, key);
  for (int key = 1; key <= 3; ++key) EXPECT_EQ(queue.next()->key, key);
  EXPECT_TRUE(queue.empty());
}

TEST(FairQueue, RemovedRequestsAreNotServed) {
  FairQueue<int> queue;
  for (int key = 1; key <= 3; ++key) queue.add(kAlice, key);
  queue.remove(kAlice, 2);
  queue.remove(kAlice, 7);
  queue.remove(kBob, 1);
  EXPECT_EQ(queue.next()->key, 1);
  EXPECT_EQ(queue.next()->key, 3);
  EXPECT_TRUE(queue.empty());
}

TEST(FairQueue, UserWithManyConnectionsGetsNoMoreTimeThanOneWithOne) {
  FairQueue<int> queue;
  for (int key = 0; key < 250; ++key) queue.add(kMallory, key);
  queue.add(kAlice, 1000);
  Duration mallory{}, alice{};
  for (int i = 0; i < 1000; ++i) {
    const auto entry = queue.next();
    ASSERT_TRUE(entry);
    const Duration took = entry->user == kMallory ? milliseconds(10) : milliseconds(1);
    (entry->user == kMallory ? mallory : alice) += took;
    queue.charge(entry->user, took);
    queue.add(entry->user, entry->key);
  }
  EXPECT_LE(mallory, alice + milliseconds(10));
  EXPECT_LE(alice, mallory + milliseconds(10));
}

TEST(FairQueue, UserAfterAPauseIsNextButHasNoCreditForIt) {
  FairQueue<int> queue;
  queue.add(kMallory, 1);
  for (int i = 0; i < 1000; ++i) {
    queue.charge(queue.next()->user, milliseconds(5));
    queue.add(kMallory, 1);
  }
  queue.add(kAlice, 2);
  EXPECT_EQ(queue.next()->user, kAlice);
  queue.charge(kAlice, milliseconds(20));
  queue.add(kAlice, 2);
  EXPECT_EQ(queue.next()->user, kMallory) << "a long pause is no credit";
}

TEST(FairQueue, WithoutMeasuredTimeUsersAlternate) {
  FairQueue<int> queue;
  for (int key = 0; key < 3; ++key) queue.add(kMallory, key);
  queue.add(kAlice, 10);
  queue.add(kBob, 20);
  EXPECT_EQ(queue.next()->user, kMallory);
  EXPECT_NE(queue.next()->user, kMallory);
  EXPECT_NE(queue.next()->user, kMallory);
  EXPECT_EQ(queue.next()->user, kMallory);
}

}  // namespace
}  // namespace gpurota::daemon
