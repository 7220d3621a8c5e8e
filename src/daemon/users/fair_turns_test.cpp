#include "daemon/users/fair_turns.h"

#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

using std::chrono::milliseconds;

constexpr uid_t kMallory = 1, kAlice = 2, kBob = 3;

TEST(FairTurns, OneUsersManyAreServedInTheOrderOfComing) {
  FairTurns<int> turns;
  EXPECT_TRUE(turns.empty());
  EXPECT_FALSE(turns.next());
  for (int key = 1; key <= 3; ++key) turns.add(kAlice, key);
  for (int key = 1; key <= 3; ++key) EXPECT_EQ(turns.next()->key, key);
  EXPECT_TRUE(turns.empty());
}

TEST(FairTurns, AUserWhoIsGoneHasNoTurn) {
  FairTurns<int> turns;
  for (int key = 1; key <= 3; ++key) turns.add(kAlice, key);
  turns.remove(kAlice, 2);
  turns.remove(kAlice, 7);
  turns.remove(kBob, 1);
  EXPECT_EQ(turns.next()->key, 1);
  EXPECT_EQ(turns.next()->key, 3);
  EXPECT_TRUE(turns.empty());
}

TEST(FairTurns, ManyConnectionsGetNoMoreTimeThanOne) {
  FairTurns<int> turns;
  for (int key = 0; key < 250; ++key) turns.add(kMallory, key);
  turns.add(kAlice, 1000);
  Duration mallory{}, alice{};
  for (int i = 0; i < 1000; ++i) {
    const auto turn = turns.next();
    ASSERT_TRUE(turn);
    const Duration took = turn->user == kMallory ? milliseconds(10) : milliseconds(1);
    (turn->user == kMallory ? mallory : alice) += took;
    turns.charge(turn->user, took);
    turns.add(turn->user, turn->key);
  }
  EXPECT_LE(mallory, alice + milliseconds(10));
  EXPECT_LE(alice, mallory + milliseconds(10));
}

TEST(FairTurns, AUserWhoComesRarelyIsNextButSavesNothingUp) {
  FairTurns<int> turns;
  turns.add(kMallory, 1);
  for (int i = 0; i < 1000; ++i) {
    turns.charge(turns.next()->user, milliseconds(5));
    turns.add(kMallory, 1);
  }
  turns.add(kAlice, 2);
  EXPECT_EQ(turns.next()->user, kAlice);
  turns.charge(kAlice, milliseconds(20));
  turns.add(kAlice, 2);
  EXPECT_EQ(turns.next()->user, kMallory) << "a long pause is no credit";
}

TEST(FairTurns, WithNothingMeasuredUsersTakeTurns) {
  FairTurns<int> turns;
  for (int key = 0; key < 3; ++key) turns.add(kMallory, key);
  turns.add(kAlice, 10);
  turns.add(kBob, 20);
  EXPECT_EQ(turns.next()->user, kMallory);
  EXPECT_NE(turns.next()->user, kMallory);
  EXPECT_NE(turns.next()->user, kMallory);
  EXPECT_EQ(turns.next()->user, kMallory);
}

}  // namespace
}  // namespace gpurota::daemon
