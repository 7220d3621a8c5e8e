#include "burn/memory_plan.h"

#include <gtest/gtest.h>

namespace gpurota::burn {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A GPU of 80 GiB on which others hold `others`.
struct Gpu {
  Bytes others;
  Bytes held;
  TimePoint now{};
  MemoryPlan plan{gib(70), gib(80)};
  int takes = 0, gives = 0;

  Bytes free() const { return gib(80) - others - held; }
  void settle() {
    for (int i = 0; i < 10'000; ++i) {
      const MemoryStep step = plan.next({gib(80), free(), held}, now);
      if (step == MemoryStep::kKeep) return;
      takes += step == MemoryStep::kTake ? 1 : 0;
      gives += step == MemoryStep::kGiveBack ? 1 : 0;
      held = step == MemoryStep::kTake ? held + plan.chunk() : held - plan.chunk();
    }
    FAIL() << "it never comes to rest";
  }
};

TEST(MemoryPlan, FillsUpToItsTargetInChunks) {
  Gpu gpu;
  gpu.settle();
  EXPECT_EQ(gpu.held, gib(70));
  EXPECT_EQ(gpu.plan.chunk(), mib(128));
}

TEST(MemoryPlan, LeavesTheReserveOfAGpuThatOthersUse) {
  Gpu gpu;
  gpu.others = gib(40);
  gpu.settle();
  EXPECT_GE(gpu.free(), MemoryPlan::kReserve);
  EXPECT_GE(gpu.held, gib(39));
}

TEST(MemoryPlan, HandsBackNoMoreThanIsMissing) {
  Gpu gpu;
  gpu.settle();
  gpu.others = gib(9) + mib(900);
  gpu.settle();
  EXPECT_EQ(gpu.gives, 2);
  EXPECT_GE(gpu.free(), MemoryPlan::kReserve);
}

TEST(MemoryPlan, DoesNotFlapWhenANeighbourComesAndGoesEverySecond) {
  Gpu gpu;
  gpu.settle();
  const int filled = gpu.takes;
  for (int second = 0; second < 60; ++second) {
    gpu.others = second % 2 == 0 ? gib(10) : Bytes();
    gpu.now += seconds(1);
    gpu.settle();
  }
  // Each round gives back and takes two chunks; without waits there would be 30 rounds.
  EXPECT_LE(gpu.takes - filled, 2 * 3);
  EXPECT_GE(gpu.gives, 2);
}

TEST(MemoryPlan, TakesAgainWhenTheNeighbourHasGoneForGood) {
  Gpu gpu;
  gpu.settle();
  gpu.others = gib(30);
  gpu.settle();
  gpu.others = Bytes();
  gpu.now += milliseconds(500);
  gpu.settle();
  EXPECT_LT(gpu.held, gib(51));
  gpu.now += MemoryPlan::kFirstWait;
  gpu.settle();
  EXPECT_EQ(gpu.held, gib(70));
}

TEST(MemoryPlan, WaitsAfterARefusal) {
  Gpu gpu;
  gpu.plan.on_refused(gpu.now);
  gpu.settle();
  EXPECT_EQ(gpu.takes, 0);
  gpu.now += MemoryPlan::kFirstWait;
  gpu.settle();
  EXPECT_EQ(gpu.held, gib(70));
}

TEST(MemoryPlan, LittleMemoryIsTakenInSmallChunks) {
  EXPECT_EQ(MemoryPlan(mib(64), gib(8)).chunk(), mib(8));
  EXPECT_EQ(MemoryPlan(mib(1), gib(8)).chunk(), mib(2));
}

}  // namespace
}  // namespace gpurota::burn
