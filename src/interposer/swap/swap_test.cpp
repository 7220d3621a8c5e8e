// Swap memory on a fake driver that fails on request: whatever fails, no byte is wrong, and nothing
// is counted twice.
#include "interposer/swap/swap_program_test.h"

namespace gpurota::interposer::swap_test {
namespace {

TEST_F(Swap, RestoresTheSameBytesAtTheSameAddresses) {
  const std::uint64_t a = add(200 * kMiB);
  const std::uint64_t b = add(3 * kMiB);
  EXPECT_EQ(space->resident_bytes(), 204 * kMiB);
  const Moved out = mover().evict(UINT64_MAX);
  EXPECT_EQ(out.bytes, 204 * kMiB);
  EXPECT_EQ(driver.physical(), 0u);
  EXPECT_EQ(driver.at(a), nullptr);
  EXPECT_EQ(mover().restore(UINT64_MAX).bytes, 204 * kMiB);
  check(a);
  check(b);
}

TEST_F(Swap, BlocksAreOfAtMost64MiBAndOnlyAsManyMoveAsAreNeeded) {
  add(640 * kMiB);
  EXPECT_EQ(mover().evict(100 * kMiB).bytes, 128 * kMiB);
  EXPECT_EQ(space->out_bytes(), 128 * kMiB);
  EXPECT_EQ(mover().restore(127 * kMiB).bytes, 64 * kMiB) << "never beyond the room there is";
}

TEST_F(Swap, SmallAllocationsShareAPageAndAreFoundByAnyAddress) {
  const std::uint64_t a = add(1000);
  const std::uint64_t b = add(100);
  EXPECT_EQ(space->resident_bytes(), 2 * kMiB);
  FoundRange found{};
  ASSERT_TRUE(space->find(a + 999, &found));
  EXPECT_EQ(found.address, a);
  ASSERT_TRUE(space->find(b, &found));
  EXPECT_EQ(found.address, b);
  EXPECT_FALSE(space->find(b + 512, &found));
  SwapFreed freed{};
  EXPECT_EQ(space->free(a + 1, &freed), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(space->free(a, &freed), CUDA_SUCCESS);
  EXPECT_EQ(freed.released, 0u);
  EXPECT_EQ(space->free(a, &freed), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(space->free(b, &freed), CUDA_SUCCESS);
  EXPECT_EQ(freed.released, 2 * kMiB);
  EXPECT_EQ(driver.ranges(), 0u);
}

TEST_F(Swap, SmallAllocationReportsWhetherItTookANewPage) {
  std::uint64_t address = 0;
  std::uint64_t took = 1;
  EXPECT_FALSE(space->allocate_shared(1000, &address)) << "there is no page yet";
  ASSERT_EQ(space->allocate(1000, &address, &took), CUDA_SUCCESS);
  EXPECT_EQ(took, kPageBytes);
  ASSERT_EQ(space->allocate(1000, &address, &took), CUDA_SUCCESS);
  EXPECT_EQ(took, 0u);
  EXPECT_TRUE(space->allocate_shared(1000, &address));
  EXPECT_FALSE(space->allocate_shared(kSmall, &address)) << "that is no small one";
  EXPECT_EQ(space->resident_bytes(), kPageBytes);
}

TEST_F(Swap, EvictedMemoryCanBeFreed) {
  const std::uint64_t a = add(100 * kMiB);
  mover().evict(UINT64_MAX);
  const std::uint64_t kept = host().free_bytes();
  SwapFreed freed{};
  EXPECT_EQ(space->free(a, &freed), CUDA_SUCCESS);
  EXPECT_EQ(freed.dropped, 100 * kMiB);
  EXPECT_EQ(freed.released, 0u);
  EXPECT_EQ(host().free_bytes(), kept + 100 * kMiB);
  EXPECT_EQ(driver.ranges(), 0u);
  EXPECT_EQ(mover().restore(UINT64_MAX).bytes, 0u);
}

TEST_F(Swap, SecondEvictionWithoutARunCopiesNothing) {
  const std::uint64_t a = add(64 * kMiB);
  mover().evict(UINT64_MAX);
  mover().restore(UINT64_MAX);
  *driver.at(a) ^= 1;  // no write is allowed while the gate is shut, so this one is not copied
  mover().evict(UINT64_MAX);
  mover().restore(UINT64_MAX);
  check(a);
  mover().forget_copies();
  write(a);
  mover().evict(UINT64_MAX);
  mover().restore(UINT64_MAX);
  check(a);
}

// Pinned beside the regions: two bounce buffers of 32 MiB, and the piece in which sums are checked.
constexpr std::size_t kOtherPins = 3;

TEST_F(Swap, HostMemoryIsPinnedInSmallPiecesAndPageableMemoryIsReachedThroughBounceBuffers) {
  const std::uint64_t a = add(160 * kMiB);
  host().set_limits(&driver.calls, std::uint64_t{1} << 30, 64 * kMiB);
  EXPECT_EQ(mover().evict(UINT64_MAX).bytes, 160 * kMiB);
  EXPECT_EQ(host().pinned_bytes(), 64 * kMiB);
  EXPECT_EQ(driver.pinned(), 2 + kOtherPins);
  EXPECT_EQ(mover().restore(UINT64_MAX).bytes, 160 * kMiB);
  check(a);
}

// The driver may still have a record of the old pin, and would not pin memory that is mapped there
// next.
TEST_F(Swap, HostMemoryThatLostItsPinIsUnpinnedBeforeItIsGivenBack) {
  add(160 * kMiB);
  host().set_limits(&driver.calls, std::uint64_t{1} << 30, 64 * kMiB);
  EXPECT_EQ(mover().evict(UINT64_MAX).bytes, 160 * kMiB);
  EXPECT_EQ(driver.pinned(), 2 + kOtherPins);
  host().lose_pins();
  EXPECT_EQ(mover().restore(UINT64_MAX).bytes, 160 * kMiB);
  mover().forget_copies();
  mover().reclaim_buffers(std::uint64_t{1} << 30);
  host().trim(0);
  EXPECT_EQ(host().total_bytes(), 0u);
  EXPECT_EQ(driver.pinned(), kOtherPins);
}

TEST_F(Swap, PageableMemoryIsSpreadEvenlyWhereNotAllCanBePinned) {
  const std::uint64_t a = add(640 * kMiB);
  host().set_limits(&driver.calls, std::uint64_t{1} << 30, 448 * kMiB);
  EXPECT_EQ(mover().evict(256 * kMiB).bytes, 256 * kMiB);
  EXPECT_EQ(host().pinned_bytes(), 192 * kMiB) << "the fourth block is pageable, with room to pin";
  EXPECT_EQ(mover().evict(UINT64_MAX).bytes, 384 * kMiB);
  EXPECT_EQ(host().pinned_bytes(), 384 * kMiB) << "and 64 MiB of bounce buffers";
  EXPECT_EQ(mover().restore(UINT64_MAX).bytes, 640 * kMiB);
  check(a);
}

TEST_F(Swap, EvictedBlocksArePinnedWhereTheyAreOnceTheLimitHasRoom) {
  const std::uint64_t a = add(160 * kMiB);
  host().set_limits(&driver.calls, std::uint64_t{1} << 30, 0);
  EXPECT_EQ(mover().evict(UINT64_MAX).bytes, 160 * kMiB);
  EXPECT_EQ(host().pinned_bytes(), 0u);
  EXPECT_FALSE(host().pin_more());
  const std::uint64_t total = host().total_bytes();
  host().set_limits(&driver.calls, std::uint64_t{1} << 30, 256 * kMiB);
  while (host().pin_more()) {
  }
  EXPECT_EQ(host().pinned_bytes(), 160 * kMiB);
  EXPECT_EQ(host().total_bytes(), total) << "no memory is taken for it";
  EXPECT_EQ(mover().restore(UINT64_MAX).bytes, 160 * kMiB);
  check(a);
}

TEST_F(Swap, RegionThatTheDriverDoesNotPinIsTriedOnce) {
  const std::uint64_t a = add(64 * kMiB);
  host().set_limits(&driver.calls, std::uint64_t{1} << 30, 0);
  EXPECT_EQ(mover().evict(UINT64_MAX).bytes, 64 * kMiB);
  host().set_limits(&driver.calls, std::uint64_t{1} << 30, 256 * kMiB);
  driver.pins = false;
  EXPECT_TRUE(host().pin_more());
  EXPECT_TRUE(host().pin_more());
  driver.pins = true;
  EXPECT_FALSE(host().pin_more());
  EXPECT_EQ(host().pinned_bytes(), 0u);
  EXPECT_EQ(mover().restore(UINT64_MAX).bytes, 64 * kMiB);
  check(a);
}

TEST_F(Swap, NothingIsPageableWhereAllCanBePinned) {
  add(640 * kMiB);
  host().set_limits(&driver.calls, std::uint64_t{1} << 30, 640 * kMiB);
  EXPECT_EQ(mover().evict(UINT64_MAX).bytes, 640 * kMiB);
  EXPECT_EQ(host().pinned_bytes(), 640 * kMiB);
}

// Room that the daemon gives while a restore is under way is used at once, not after the restore.
TEST_F(Swap, RestoreUsesRoomThatIsGivenMeanwhile) {
  const std::uint64_t a = add(640 * kMiB);
  ASSERT_EQ(mover().evict(UINT64_MAX).bytes, 640 * kMiB);
  std::vector<std::uint64_t> rooms = {0, 63 * kMiB, 200 * kMiB, 0, 1024 * kMiB};
  const auto more = [](void* self) {
    auto& left = *static_cast<std::vector<std::uint64_t>*>(self);
    if (left.empty()) return std::uint64_t{0};
    const std::uint64_t room = left.back();
    left.pop_back();
    return room;
  };
  Mover with_more(*space, no_progress, &rooms);
  const Moved moved = with_more.restore(64 * kMiB, more);
  EXPECT_EQ(moved.bytes, 640 * kMiB);
  EXPECT_EQ(moved.room, (64 + 63 + 200 + 1024) * kMiB) << "what is left over is given back";
  check(a);
}

// The driver unpins memory with the context in which it was pinned, and tells nobody.
TEST_F(Swap, HostMemoryThatWasPinnedInAContextThatIsGoneIsPinnedAgain) {
  const std::uint64_t a = add(64 * kMiB);
  EXPECT_EQ(mover().evict(UINT64_MAX).bytes, 64 * kMiB);
  host().lose_pins();
  EXPECT_EQ(host().pinned_bytes(), 0u);
  EXPECT_TRUE(host().pin_more());
  EXPECT_EQ(host().pinned_bytes(), 32 * kMiB);
  driver.pins = false;
  EXPECT_TRUE(host().pin_more()) << "tried";
  EXPECT_FALSE(host().pin_more()) << "and tried only once";
  EXPECT_EQ(host().pinned_bytes(), 32 * kMiB);
  driver.pins = true;
  EXPECT_EQ(mover().restore(UINT64_MAX).bytes, 64 * kMiB);
  check(a);
}

TEST_F(Swap, HostMemoryThatRunsOutLeavesTheRestResident) {
  const std::uint64_t a = add(256 * kMiB);
  host().set_limits(&driver.calls, 128 * kMiB, 128 * kMiB);
  const Moved moved = mover().evict(UINT64_MAX);
  EXPECT_EQ(moved.bytes, 128 * kMiB);
  EXPECT_TRUE(moved.out_of_host);
  EXPECT_EQ(space->resident_bytes(), 128 * kMiB);
  mover().restore(UINT64_MAX);
  check(a);
}

TEST_F(Swap, BuffersOfRunningTenantsAreUsedForEvictedMemory) {
  const std::uint64_t a = add(64 * kMiB);
  const std::uint64_t b = add(64 * kMiB);
  host().set_limits(&driver.calls, 64 * kMiB, 64 * kMiB);
  ASSERT_EQ(mover().evict(64 * kMiB).bytes, 64 * kMiB);
  mover().restore(UINT64_MAX);
  mover().forget_copies();
  SwapFreed freed{};
  ASSERT_EQ(space->free(a, &freed), CUDA_SUCCESS);
  EXPECT_EQ(mover().evict(UINT64_MAX).bytes, 64 * kMiB);
  mover().restore(UINT64_MAX);
  check(b);
}

TEST_F(Swap, FailedAllocationLeavesNothing) {
  for (int i = 0; i < 300; ++i) {
    driver.failing = 0.1;
    const std::uint64_t lost = space->lost_bytes();
    const std::uint64_t a = add(300 * kMiB);
    driver.failing = 0;
    if (a == 0) {
      EXPECT_EQ(driver.physical(), space->resident_bytes());
      EXPECT_EQ(space->resident_bytes(), space->lost_bytes());
    } else {
      SwapFreed freed{};
      ASSERT_EQ(space->free(a, &freed), CUDA_SUCCESS);
      EXPECT_EQ(space->lost_bytes(), lost);
    }
  }
}

TEST_F(Swap, ImpossibleSizesAreRefused) {
  std::uint64_t address = 0;
  EXPECT_EQ(space->allocate(0, &address), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(space->allocate(UINT64_MAX, &address), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(space->allocate(UINT64_MAX - kMiB, &address), CUDA_ERROR_OUT_OF_MEMORY);
}

class SwapUnderFailures : public Swap, public testing::WithParamInterface<unsigned> {
 protected:
  SwapUnderFailures() : Swap(GetParam()) {}

  void step() {
    switch (random() % 8) {
      case 0:
      case 1:
        add(random() % 3 == 0 ? random() % 5000 + 1 : (random() % 150 + 1) * kMiB);
        break;
      case 2:
        free_one();
        break;
      case 3:
        mover().evict(random() % 300 * kMiB);
        break;
      case 4:
        mover().restore(random() % 300 * kMiB);
        break;
      case 5:
        host().trim(random() % 200 * kMiB);
        break;
      case 6:
        host().prepare(64 * kMiB);
        break;
      default:
        run();
        break;
    }
  }

  void free_one() {
    if (live.empty()) return;
    auto it = live.begin();
    std::advance(it, static_cast<long>(random() % live.size()));
    SwapFreed freed{};
    space->free(it->first, &freed);
    live.erase(it);
  }

  // Has a turn: restores all memory, however often that fails, then reads and rewrites everything.
  void run() {
    const double failing = driver.failing;
    for (int tries = 0; space->out_bytes() != 0; ++tries) {
      if (tries > 20) driver.failing = 0;
      mover().restore(UINT64_MAX);
    }
    for (const auto& [address, size] : live) check(address);
    mover().forget_copies();
    for (const auto& [address, size] : live) {
      if (random() % 2 == 0) write(address);
    }
    driver.failing = failing;
  }
};

TEST_P(SwapUnderFailures, NoByteIsWrongAndNothingIsCountedTwice) {
  // With every other seed, most of the host memory is pageable.
  host().set_limits(&driver.calls, std::uint64_t{1} << 30, (GetParam() % 2 == 0 ? 512 : 96) * kMiB);
  driver.failing = 0.03;
  for (int i = 0; i < 400 && !HasFatalFailure(); ++i) {
    step();
    ASSERT_EQ(driver.physical(), space->resident_bytes());
  }
  run();
  driver.failing = 0;
  const std::uint64_t lost = space->lost_bytes();
  while (!live.empty()) free_one();
  EXPECT_EQ(space->lost_bytes(), lost);
  EXPECT_EQ(driver.physical(), lost);
  EXPECT_EQ(space->out_bytes(), 0u);
}

// One seed takes three seconds under the thread sanitizer.
#ifdef __SANITIZE_THREAD__
constexpr unsigned kSeeds = 8;
#else
constexpr unsigned kSeeds = 40;
#endif
INSTANTIATE_TEST_SUITE_P(Seeds, SwapUnderFailures, testing::Range(1u, kSeeds + 1));

}  // namespace
}  // namespace gpurota::interposer::swap_test
