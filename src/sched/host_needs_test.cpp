#include "sched/host_needs.h"

#include <gtest/gtest.h>

#include <random>

namespace gpurota::sched {
namespace {

using Parts = std::vector<Bytes>;

TEST(DivideByNeed, WhatSomeDoNotNeedGoesToThoseWhoNeedMore) {
  EXPECT_EQ(divide_by_need(gib(20), {gib(12), gib(1), gib(1)}), (Parts{gib(14), gib(3), gib(3)}));
  EXPECT_EQ(divide_by_need(gib(10), {gib(12), gib(1), gib(1)}), (Parts{gib(8), gib(1), gib(1)}));
  EXPECT_EQ(divide_by_need(gib(10), {gib(12), gib(12)}), (Parts{gib(5), gib(5)}));
  EXPECT_EQ(divide_by_need(gib(9), {Bytes(), Bytes(), Bytes()}), (Parts{gib(3), gib(3), gib(3)}));
}

TEST(DivideByNeed, NothingAndNobodyAreFine) {
  EXPECT_EQ(divide_by_need(gib(1), {}), Parts{});
  EXPECT_EQ(divide_by_need(Bytes(), {gib(1), Bytes()}), (Parts{Bytes(), Bytes()}));
}

TEST(DivideByNeed, NobodyGetsLessThanAnEvenPartOrTheirNeedAndAllTogetherNoMoreThanThereIs) {
  std::mt19937_64 random(44);
  for (int i = 0; i < 1000; ++i) {
    const Bytes whole(random() % (std::uint64_t{1} << 40));
    Parts needs(1 + random() % 20);
    for (Bytes& need : needs) need = Bytes(random() % (std::uint64_t{1} << (20 + random() % 21)));
    const Parts parts = divide_by_need(whole, needs);
    Bytes sum;
    for (std::size_t k = 0; k < needs.size(); ++k) {
      EXPECT_GE(parts[k], std::min(needs[k], Bytes(whole.count() / needs.size())));
      sum += parts[k];
    }
    EXPECT_LE(sum, whole);
    EXPECT_LT((whole - sum).count(), needs.size());
  }
}

}  // namespace
}  // namespace gpurota::sched
