#include "jobs/start_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace gpurota::jobs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(StartOrder, IsTheOrderOfAddingByDefault) {
  EXPECT_THAT(*start_order({{"b", {}}, {"a", {}}, {"c", {}}}), ElementsAre(0, 1, 2));
}

TEST(StartOrder, PutsAJobAfterThoseItNames) {
  EXPECT_THAT(*start_order({{"web", {"db", "cache"}}, {"cache", {"db"}}, {"db", {}}, {"x", {}}}),
              ElementsAre(2, 1, 0, 3));
}

TEST(StartOrder, IgnoresUnknownNames) {
  EXPECT_THAT(*start_order({{"a", {"gone"}}, {"b", {"a"}}}), ElementsAre(0, 1));
}

TEST(StartOrder, CircleIsRefusedWithItsNames) {
  const auto order = start_order({{"x", {"a"}}, {"a", {"b"}}, {"b", {"c"}}, {"c", {"a"}}});
  ASSERT_FALSE(order);
  EXPECT_THAT(order.error().message, HasSubstr("a after b after c after a"));
  EXPECT_FALSE(start_order({{"a", {"a"}}}));
  EXPECT_THAT(order.error().message, HasSubstr("Leave out one --boot-after"));
  EXPECT_THAT(start_order({{"a", {"a"}}}, "--after-end").error().message,
              HasSubstr("Leave out one --after-end"));
}

TEST(StartOrder, LongChainNeedsNoDeepStack) {
  std::vector<Ordered> jobs;
  for (int i = 0; i < 50'000; ++i) {
    jobs.push_back({std::to_string(i), {std::to_string(i + 1)}});
  }
  const auto order = start_order(jobs);
  ASSERT_TRUE(order);
  EXPECT_EQ(order->front(), 49'999U);
}

TEST(StartOrder, HoldsForRandomJobsWithoutCircles) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::size_t> rank(20);
    for (std::size_t i = 0; i < rank.size(); ++i) rank[i] = i;
    std::shuffle(rank.begin(), rank.end(), random);
    std::vector<Ordered> jobs(rank.size());
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      jobs[i].name = std::to_string(i);
      for (std::size_t j = 0; j < jobs.size(); ++j) {
        if (rank[j] < rank[i] && random() % 6 == 0) jobs[i].after.push_back(std::to_string(j));
      }
    }
    const auto order = start_order(jobs);
    ASSERT_TRUE(order) << "seed " << seed;
    std::vector<std::size_t> at(jobs.size());
    for (std::size_t i = 0; i < order->size(); ++i) at[order->at(i)] = i;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      for (const std::string& name : jobs[i].after) {
        EXPECT_LT(at[std::stoul(name)], at[i]) << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace gpurota::jobs
