// The hooks' bookkeeping, in this process, on a fake driver that knows what a GPU would lose.
#include "interposer/account/state.h"
#include "interposer/driver/driver_functions.h"
#include "interposer/memory/fake_driver_test.h"
#include "interposer/memory/vmm.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <vector>

namespace gpurota::interposer_test {
namespace {

using interposer::Released;
using interposer::State;

TEST(Linear, ChargesExactlyTheBlocksThatTheGpuLoses) {
  reset_fake_driver(256 * kMiB);
  std::mt19937 random(1);
  std::vector<CUdeviceptr> live;
  for (int i = 0; i < 20000; ++i) {
    if (live.empty() || random() % 2 == 0) {
      const std::size_t size = random() % 4 == 0 ? random() % (6u << 20) + 1 : random() % 5000 + 1;
      CUdeviceptr p = 0;
      if (cuMemAlloc_v2(&p, size) == CUDA_SUCCESS) live.push_back(p);
    } else {
      std::swap(live[random() % live.size()], live.back());
      ASSERT_EQ(cuMemFree_v2(live.back()), CUDA_SUCCESS);
      live.pop_back();
    }
    ASSERT_EQ(charged_bytes(), physical_bytes());
  }
  for (CUdeviceptr p : live) EXPECT_EQ(cuMemFree_v2(p), CUDA_SUCCESS);
  EXPECT_EQ(charged_bytes(), 0);
  EXPECT_LE(most_physical_bytes(), 256 * kMiB);
}

TEST(Linear, ReturnsMemoryOfARefusedAllocation) {
  reset_fake_driver(64 * kMiB);
  fail_allocations(1);
  CUdeviceptr p = 0;
  EXPECT_EQ(cuMemAlloc_v2(&p, 8 << 20), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(charged_bytes(), 0);
}

TEST(Linear, SendsUnknownPointersToTheDriver) {
  reset_fake_driver(64 * kMiB);
  EXPECT_EQ(cuMemFree_v2(0x1234), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(charged_bytes(), 0);
}

TEST(Linear, AFailedFreeKeepsItsCharge) {
  reset_fake_driver(64 * kMiB);
  CUdeviceptr p = 0;
  ASSERT_EQ(cuMemAlloc_v2(&p, 8 << 20), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFree_v2(p), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(charged_bytes(), 0);
}

TEST(Pools, PoolsAreChargedByTheirReservation) {
  reset_fake_driver(256 * kMiB);
  CUdeviceptr p = 0;
  ASSERT_EQ(cuMemAllocAsync(&p, 1 << 20, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(charged_bytes(), 32 * kMiB);
  ASSERT_EQ(cuMemFreeAsync(p, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(charged_bytes(), 32 * kMiB);
}

TEST(Pools, ReleaseIdleMemoryForLinearAllocations) {
  reset_fake_driver(64 * kMiB);
  CUdeviceptr p = 0;
  ASSERT_EQ(cuMemAllocAsync(&p, 1 << 20, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFreeAsync(p, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc_v2(&p, 64 << 20), CUDA_SUCCESS);
  EXPECT_LE(most_physical_bytes(), 64 * kMiB);
}

TEST(Pools, ServeFromTheirOwnMemoryAtTheLimit) {
  reset_fake_driver(64 * kMiB);
  CUdeviceptr p = 0;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(cuMemAllocAsync(&p, 60 << 20, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(cuMemFreeAsync(p, nullptr), CUDA_SUCCESS);
  }
  EXPECT_EQ(cuMemAllocAsync(&p, 65 << 20, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_LE(most_physical_bytes(), 64 * kMiB);
}

// Whatever the timing: what the GPU loses never exceeds the grant, and nothing stays charged.
TEST(Threads, NeverHoldMoreThanWasGranted) {
  reset_fake_driver(512 * kMiB);
  std::vector<std::thread> all;
  for (unsigned seed = 0; seed < 8; ++seed) {
    all.emplace_back([seed] {
      std::mt19937 random(seed);
      std::vector<CUdeviceptr> linear;
      std::vector<CUdeviceptr> pooled;
      for (int i = 0; i < 2000; ++i) {
        CUdeviceptr p = 0;
        const std::size_t size = random() % (12u << 20) + 1;
        switch (random() % 4) {
          case 0:
            if (cuMemAlloc_v2(&p, size) == CUDA_SUCCESS) linear.push_back(p);
            break;
          case 1:
            if (seed < 2 && cuMemAllocAsync(&p, size, nullptr) == CUDA_SUCCESS) pooled.push_back(p);
            break;
          case 2:
            if (linear.empty()) break;
            cuMemFree_v2(linear.back());
            linear.pop_back();
            break;
          default:
            if (pooled.empty()) break;
            cuMemFreeAsync(pooled.back(), nullptr);
            pooled.pop_back();
        }
      }
      for (CUdeviceptr p : linear) cuMemFree_v2(p);
      for (CUdeviceptr p : pooled) cuMemFreeAsync(p, nullptr);
    });
  }
  for (std::thread& t : all) t.join();
  // A pool at its limit may grow by one unit per allocation that is inside the driver.
  EXPECT_LE(most_physical_bytes(), (512 + 2 * 32) * kMiB);
  cuMemPoolTrimTo(reinterpret_cast<CUmemoryPool>(std::uintptr_t{0x2000}), 0);
  EXPECT_EQ(charged_bytes(), physical_bytes());
  EXPECT_EQ(charged_bytes(), 0);
}

int capture_questions = 0;
CUresult begin_capture(CUstream, CUstreamCaptureMode) { return CUDA_SUCCESS; }
CUresult end_capture(CUstream, CUgraph*) { return CUDA_SUCCESS; }
CUresult is_capturing(CUstream, CUstreamCaptureStatus* out) {
  ++capture_questions;
  return *out = CU_STREAM_CAPTURE_STATUS_NONE, CUDA_SUCCESS;
}

TEST(Captures, StreamIsQueriedOnlyIfACaptureMayExist) {
  reset_fake_driver(256 * kMiB);
  install(interposer::kFn_cuStreamBeginCapture_v2, begin_capture);
  install(interposer::kFn_cuStreamEndCapture, end_capture);
  install(interposer::kFn_cuStreamIsCapturing, is_capturing);
  const auto stream = reinterpret_cast<CUstream>(std::uintptr_t{0x9000});
  const auto is_asked = [&] {
    const int before = capture_questions;
    CUdeviceptr p = 0;
    EXPECT_EQ(cuMemAllocAsync(&p, 1 << 20, stream), CUDA_SUCCESS);
    return capture_questions > before;
  };
  EXPECT_FALSE(is_asked());
  EXPECT_EQ(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_TRUE(is_asked());
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  EXPECT_FALSE(is_asked());
  interposer::state().count_unhooked("cuStreamBeginCaptureOfATimeToCome");
  EXPECT_TRUE(is_asked());
}

class Vmm : public ::testing::Test {
 protected:
  void SetUp() override { reset_fake_driver(0); }
  std::int64_t release(std::uint64_t handle) {
    std::int64_t credits[GPUROTA_SLOTS] = {};
    vmm_release_done(s_, vmm_release_begins(s_, handle), credits);
    return credits[0];
  }
  std::int64_t unmap(std::uint64_t ptr, std::uint64_t size) {
    std::int64_t credits[GPUROTA_SLOTS] = {};
    vmm_unmapped(s_, ptr, size, credits);
    return credits[0];
  }
  State& s_ = interposer::state();
};

TEST_F(Vmm, CreditsWhenTheLastHandleAndMappingEnd) {
  vmm_created(s_, 7, 100, 0);
  vmm_mapped(s_, 1 << 21, 100, 7);
  EXPECT_EQ(release(7), 0);
  EXPECT_EQ(unmap(1 << 21, 100), 100);
  vmm_created(s_, 7, 100, 0);
  vmm_mapped(s_, 1 << 21, 100, 7);
  EXPECT_EQ(unmap(1 << 21, 100), 0);
  EXPECT_EQ(release(7), 100);
}

TEST_F(Vmm, FindsAHandleRetainedAgainByAddress) {
  vmm_created(s_, 7, 100, 0);
  vmm_mapped(s_, 1 << 21, 100, 7);
  release(7);
  vmm_retained(s_, 9, (1 << 21) + 50);  // under another number
  EXPECT_EQ(unmap(1 << 21, 100), 0);
  EXPECT_EQ(release(9), 100);
}

TEST_F(Vmm, TwoAllocationsWithAReusedHandleAreKeptApart) {
  vmm_created(s_, 7, 100, 0);
  vmm_mapped(s_, 1 << 21, 100, 7);
  release(7);
  vmm_created(s_, 7, 300, 0);  // the driver gives the number out again
  EXPECT_EQ(unmap(1 << 21, 100), 100);
  EXPECT_EQ(release(7), 300);
}

TEST_F(Vmm, AFailedReleaseChangesNothing) {
  vmm_created(s_, 7, 100, 0);
  const Released released = vmm_release_begins(s_, 7);
  vmm_release_failed(s_, 7, released);
  EXPECT_EQ(release(7), 100);
}

TEST_F(Vmm, OneUnmapEndsAllMappingsInItsRange) {
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    vmm_created(s_, i, 2 << 20, 0);
    vmm_mapped(s_, i << 21, 2 << 20, i);
    release(i);
  }
  EXPECT_EQ(unmap(std::uint64_t{1} << 21, std::uint64_t{1000} << 21), 2000 * kMiB);
  EXPECT_EQ(memory_of(s_).vmm.physicals.size(), 0u);
  EXPECT_EQ(memory_of(s_).vmm.mappings.size(), 0u);
}

TEST_F(Vmm, ForeignHandlesAndHostMemoryCreditNothing) {
  vmm_mapped(s_, 1 << 21, 100, 99);
  EXPECT_EQ(release(99), 0);
  EXPECT_EQ(unmap(1 << 21, 100), 0);
  vmm_created(s_, 8, 100, -1);
  EXPECT_EQ(release(8), 0);
}

}  // namespace
}  // namespace gpurota::interposer_test
