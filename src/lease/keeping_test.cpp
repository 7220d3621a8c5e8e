#include "lease/keeping.h"

#include <gtest/gtest.h>

namespace gpurota::lease {
namespace {

using namespace std::chrono_literals;

const GpuUuid kGpu{"GPU-0"}, kOther{"GPU-1"};
constexpr RequestId kKeeper{1}, kBlocked{2}, kNext{3};

// The keeper's plan on one GPU makes another request wait.
KeepingFacts facts() { return {{kBlocked}, {kGpu}, {{kGpu, kKeeper}, {kOther, kKeeper}}, {}}; }

TEST(Keeping, LongBlockedRequestIgnoresPlans) {
  Keeping keeping;
  EXPECT_EQ(keeping.next_change(facts()), 60min);
  keeping.pass(facts(), 59min);
  EXPECT_FALSE(keeping.is_open(kBlocked));
  EXPECT_EQ(keeping.next_change(facts()), 1min);
  keeping.pass(facts(), 1min);
  EXPECT_TRUE(keeping.is_open(kBlocked));
  EXPECT_TRUE(keeping.is_lapsed(kGpu));
  EXPECT_FALSE(keeping.is_lapsed(kOther)) << "nobody would have started there";
  EXPECT_FALSE(keeping.next_change(facts()));
}

TEST(Keeping, OnlyTimeThatMakesOthersWaitCounts) {
  Keeping keeping;
  KeepingFacts nobody = facts();
  nobody.blocked.clear();
  nobody.kept.clear();
  EXPECT_FALSE(keeping.next_change(nobody));
  keeping.pass(nobody, 500min);
  EXPECT_EQ(keeping.kept(kGpu), 0min);
}

// A blocked request is cancelled, and then another request is blocked.
TEST(Keeping, ClockOfAGpuRunsWhicheverLeaseIsBlocked) {
  Keeping keeping;
  keeping.pass(facts(), 40min);
  keeping.forget(kBlocked);
  KeepingFacts next = facts();
  next.blocked = {kNext};
  keeping.pass(next, 20min);
  EXPECT_FALSE(keeping.is_open(kNext));
  EXPECT_TRUE(keeping.is_lapsed(kGpu));
}

TEST(Keeping, KeptTimeOfAGpuEndsOnlyWhenItsRequestStarts) {
  Keeping keeping;
  keeping.pass(facts(), 60min);
  keeping.on_start(kBlocked, {kGpu}, facts());
  EXPECT_TRUE(keeping.is_lapsed(kGpu));
  EXPECT_FALSE(keeping.is_open(kBlocked)) << "it has started";
  keeping.on_start(kKeeper, {kGpu}, facts());
  EXPECT_FALSE(keeping.is_lapsed(kGpu));
}

TEST(Keeping, KeptTimeRunsDownWhileAGpuIsKeptForNobody) {
  Keeping keeping;
  keeping.pass(facts(), 60min);
  keeping.pass({}, 20min);
  EXPECT_EQ(keeping.kept(kGpu), 40min);
  keeping.pass({}, 50min);
  EXPECT_EQ(keeping.kept(kGpu), 0min);
}

TEST(Keeping, SiteCanKeepGpusForEver) {
  Keeping keeping({.most = 0ms, .longest_wait = 24h});
  keeping.pass(facts(), 1000h);
  EXPECT_FALSE(keeping.is_open(kBlocked));
  EXPECT_FALSE(keeping.is_lapsed(kGpu));
  EXPECT_FALSE(keeping.next_change(facts()));
}

// After a reload of the configuration.
TEST(Keeping, RemovedBoundNoLongerApplies) {
  Keeping keeping;
  keeping.pass(facts(), 60min);
  keeping.set_rules({.most = 0ms, .longest_wait = 24h});
  EXPECT_FALSE(keeping.is_lapsed(kGpu));
}

TEST(Keeping, ARequestIsProtectedForADay) {
  Keeping keeping;
  EXPECT_FALSE(keeping.may_protect(kKeeper, 23h));
  EXPECT_TRUE(keeping.may_protect(kKeeper, 24h));
  KeepingFacts protects = facts();
  protects.protected_request = kKeeper;
  keeping.pass(protects, 24h);
  EXPECT_FALSE(keeping.may_protect(kKeeper, 48h));
}

TEST(Keeping, ClocksSurviveARestart) {
  Keeping before, after;
  before.pass(facts(), 45min);
  after.restore(kBlocked, before.blocked(kBlocked), before.protected_for(kBlocked));
  after.restore(kGpu, before.kept(kGpu));
  EXPECT_EQ(after.next_change(facts()), 15min);
}

}  // namespace
}  // namespace gpurota::lease
