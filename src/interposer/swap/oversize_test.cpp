// Memory of which a part is in host memory for good: that part is used in place, and only the rest
// moves.
#include "interposer/swap/swap_program_test.h"

namespace gpurota::interposer::swap_test {
namespace {

class OversizeSwap : public Swap {
 protected:
  std::uint64_t add_with(std::uint64_t size, std::uint64_t hosted) {
    std::uint64_t address = 0;
    if (space->allocate(size, &address, nullptr, hosted) != CUDA_SUCCESS) return 0;
    live[address] = size;
    write(address);
    return address;
  }
  SwapFreed end(std::uint64_t address) {
    SwapFreed freed{};
    EXPECT_EQ(space->free(address, &freed), CUDA_SUCCESS);
    return freed;
  }
};

TEST_F(OversizeSwap, TheEndOfAnAllocationStaysInHostMemoryAndTheRestMoves) {
  const std::uint64_t a = add_with(200 * kMiB, 70 * kMiB);
  EXPECT_EQ(driver.physical(true), 70 * kMiB);
  EXPECT_EQ(space->resident_bytes(), 130 * kMiB);
  EXPECT_EQ(space->hosted_bytes(), 70 * kMiB);
  EXPECT_EQ(mover().evict(UINT64_MAX).bytes, 130 * kMiB);
  EXPECT_EQ(driver.physical(), 70 * kMiB);
  EXPECT_EQ(driver.at(a), nullptr);
  EXPECT_NE(driver.at(a + 130 * kMiB), nullptr);
  EXPECT_EQ(space->hosted_bytes(), 70 * kMiB);
  EXPECT_EQ(mover().restore(UINT64_MAX).bytes, 130 * kMiB);
  check(a);
  const SwapFreed freed = end(a);
  EXPECT_EQ(freed.released, 130 * kMiB);
  EXPECT_EQ(freed.hosted, 70 * kMiB);
  EXPECT_EQ(driver.physical(), 0u);
  EXPECT_EQ(driver.ranges(), 0u);
}

TEST_F(OversizeSwap, WholeAllocationMayBeInHostMemory) {
  const std::uint64_t a = add_with(70 * kMiB, 70 * kMiB);
  EXPECT_EQ(space->resident_bytes(), 0u);
  EXPECT_EQ(mover().evict(UINT64_MAX).bytes, 0u);
  check(a);
  EXPECT_EQ(end(a).hosted, 70 * kMiB);
  EXPECT_EQ(space->hosted_bytes(), 0u);
}

TEST_F(OversizeSwap, AllocationIsFreedWhileItsMovableRestIsEvicted) {
  const std::uint64_t a = add_with(100 * kMiB, 30 * kMiB);
  mover().evict(UINT64_MAX);
  const SwapFreed freed = end(a);
  EXPECT_EQ(freed.dropped, 70 * kMiB);
  EXPECT_EQ(freed.released, 0u);
  EXPECT_EQ(freed.hosted, 30 * kMiB);
  EXPECT_EQ(driver.physical(), 0u);
}

TEST_F(OversizeSwap, SmallAllocationsShareAPageInHostMemory) {
  std::uint64_t a = 0, b = 0, took = 0;
  ASSERT_EQ(space->allocate(1000, &a, &took, kPageBytes), CUDA_SUCCESS);
  EXPECT_EQ(took, kPageBytes);
  EXPECT_TRUE(space->allocate_shared(1000, &b));
  EXPECT_EQ(space->resident_bytes(), 0u);
  EXPECT_EQ(end(a).hosted, 0u);
  EXPECT_EQ(end(b).hosted, kPageBytes);
}

TEST_F(OversizeSwap, MemoryMappedByTheProgramIsFullyResident) {
  std::uint64_t home = 0, other = 0;
  ASSERT_EQ(driver.calls.reserve(driver.calls.self, 80 * kMiB, &other), CUDA_SUCCESS);
  ASSERT_EQ(space->allocate_pages(80 * kMiB, kHosted, &home), CUDA_SUCCESS);
  EXPECT_EQ(driver.physical(true), 80 * kMiB);
  ASSERT_EQ(space->map_alias(home, 0, other, 80 * kMiB), CUDA_SUCCESS);
  driver.allow_range(other, 80 * kMiB);
  *driver.at(other + 70 * kMiB) = 7;
  EXPECT_EQ(mover().evict(UINT64_MAX).bytes, 0u);
  EXPECT_EQ(*driver.at(other + 70 * kMiB), 7);
  ASSERT_EQ(space->unmap_alias(home, 0, other, 80 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(end(home).hosted, 80 * kMiB);
}

TEST_F(OversizeSwap, FailureLeaksNothingAndCorruptsNothing) {
  for (int i = 0; i < 300; ++i) {
    driver.failing = 0.05;
    const std::uint64_t a = add_with(200 * kMiB, 90 * kMiB);
    if (a != 0) {
      mover().evict(UINT64_MAX);
      driver.failing = 0;
      mover().restore(UINT64_MAX);
      check(a);
      EXPECT_EQ(end(a).hosted, 90 * kMiB);
    }
    driver.failing = 0;
    EXPECT_EQ(space->resident_bytes(), space->lost_bytes());
    EXPECT_EQ(driver.physical(), space->lost_bytes() + space->hosted_bytes());
  }
}

}  // namespace
}  // namespace gpurota::interposer::swap_test
