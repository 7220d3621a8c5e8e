// Tests on the simulated machine that programs whose memory is in blocks of many sizes get the GPU
// for as long as other programs.
#include "sched/turns_blocks_test.h"

#include "testing/effort.h"

#include <gtest/gtest.h>

#include <numeric>

namespace gpurota::sched {
namespace {

using namespace testing_world;

LeasePlan busy_lease(std::uint64_t id, Shape shape) {
  LeasePlan lease;
  lease.terms.id = LeaseId{id};
  lease.terms.gpus = {{GpuUuid{"GPU-0"}, gib(7)}};
  lease.memory = mib(5956);
  lease.wired = mib(100);
  lease.kernel = 0.004;
  lease.shape = shape;
  return lease;
}

// Programs that always have work, and take turns of half a second.
Plan busy_plan(std::uint64_t leases, Bytes capacity, Shape shape) {
  Plan plan;
  plan.seconds = 30;
  plan.settings.quantum = std::chrono::milliseconds(500);
  GpuSettings gpu;
  gpu.uuid = GpuUuid{"GPU-0"};
  gpu.capacity = capacity;
  plan.gpus = {gpu};
  for (std::uint64_t i = 0; i < leases; ++i) {
    plan.leases.push_back(busy_lease(i + 1, shape));
    plan.script.push_back(
        {0.001 * static_cast<double>(i), Act::kStart, static_cast<int>(i), 0, {}});
  }
  return plan;
}

// The part of the time in which a program runs. If all programs fit, they run side by side.
double held(std::uint64_t leases, Bytes capacity, Shape shape) {
  const Plan plan = busy_plan(leases, capacity, shape);
  const Outcome outcome = simulate(plan);
  EXPECT_EQ(outcome.failure, "");
  return std::accumulate(outcome.run.begin(), outcome.run.end(), 0.0) / plan.seconds;
}

class TurnsBlocks : public ::testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Leases, TurnsBlocks, ::testing::Range(2UL, 2UL + testing::effort(5UL)));

TEST_P(TurnsBlocks, BlockSizesDoNotReduceTheTimeOfALease) {
  for (const Bytes capacity : {gib(10), gib(13)}) {
    const double equal = held(GetParam(), capacity, Shape::kEqual);
    for (const Shape shape : {Shape::kLlama, Shape::kTorch, Shape::kVllm, Shape::kOdd}) {
      const double mixed = held(GetParam(), capacity, shape);
      EXPECT_GE(mixed, 0.95 * equal)
          << "shape " << static_cast<int>(shape) << ", " << to_string(capacity);
      RecordProperty(std::to_string(static_cast<int>(shape)) + " of " + to_string(capacity),
                     std::to_string(mixed) + " of " + std::to_string(equal));
    }
  }
}

TEST(Cutter, CutsAllMemoryIntoBlocksOfAPieceAtMost) {
  std::mt19937_64 random(1);
  for (const Shape shape :
       {Shape::kEqual, Shape::kLlama, Shape::kTorch, Shape::kVllm, Shape::kOdd}) {
    Blocks blocks;
    Cutter(mib(64), gib(5) + Bytes(4711), &blocks).cut(shape, random);
    Bytes sum;
    for (const Block& block : blocks) {
      EXPECT_LE(block.size, mib(64));
      sum += block.size;
    }
    EXPECT_EQ(sum, gib(5) + Bytes(4711));
  }
}

}  // namespace
}  // namespace gpurota::sched
