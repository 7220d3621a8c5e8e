// Pools that end, or change, while other threads use them.

#include "interposer/account/state.h"
#include "interposer/driver/driver.h"
#include "interposer/memory/fake_driver_test.h"
#include "interposer/memory/pool_charge.h"
#include "interposer/memory/pool_settlement.h"
#include "interposer/memory/reserve.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <thread>

namespace gpurota::interposer_test {
namespace {

using namespace gpurota::interposer;

CUmemoryPool handle(std::uintptr_t number) { return reinterpret_cast<CUmemoryPool>(number); }
const CUmemoryPool kFirst = handle(0xaaa000);
const CUmemoryPool kSecond = handle(0xbbb000);
const CUmemoryPool kDefault = handle(0x2000);
CUstream a_stream() { return reinterpret_cast<CUstream>(std::uintptr_t{0x9000}); }

// A driver whose pools take 32 MiB for each allocation. Its calls run hooks that the tests set.
std::map<CUmemoryPool, std::int64_t> pool_bytes;
CUmemoryPool the_current = nullptr;
CUmemoryPool next_made = nullptr;
int unknown_handles = 0;
std::uint64_t last_address = 0;
std::function<void()> in_destroy;
std::function<void()> in_current;
std::function<void()> in_query;
std::function<void()> in_trim;
std::function<void()> after_attribute;

CUresult make(CUmemoryPool* out, const CUmemPoolProps*) {
  *out = next_made;
  pool_bytes[*out] = 0;
  return CUDA_SUCCESS;
}
CUresult destroy(CUmemoryPool pool) {
  in_destroy();
  pool_bytes.erase(pool);
  return CUDA_SUCCESS;
}
CUresult attribute(CUmemoryPool pool, CUmemPool_attribute, void* value) {
  const auto found = pool_bytes.find(pool);
  if (found == pool_bytes.end()) return ++unknown_handles, CUDA_ERROR_INVALID_VALUE;
  *static_cast<std::int64_t*>(value) = found->second;
  after_attribute();
  return CUDA_SUCCESS;
}
CUresult trim_to(CUmemoryPool pool, size_t) {
  if (pool_bytes.count(pool) == 0) ++unknown_handles;
  in_trim();
  return CUDA_SUCCESS;
}
CUresult alloc_from(CUdeviceptr* out, size_t, CUmemoryPool pool, CUstream) {
  pool_bytes[pool] += 32 * kMiB;
  return *out = last_address += 1 << 20, CUDA_SUCCESS;
}
CUresult alloc(CUdeviceptr* out, size_t size, CUstream stream) {
  return alloc_from(out, size, the_current, stream);
}
CUresult free_pooled(CUdeviceptr, CUstream) { return CUDA_SUCCESS; }
CUresult get_current(CUmemoryPool* out, CUdevice) {
  *out = the_current;
  in_current();
  return CUDA_SUCCESS;
}
CUresult get_default(CUmemoryPool* out, CUdevice) { return *out = kDefault, CUDA_SUCCESS; }
CUresult no_default(CUmemoryPool*, CUmemLocation*, CUmemAllocationType) {
  return CUDA_ERROR_INVALID_VALUE;
}
CUresult query(CUstream) { return in_query(), CUDA_ERROR_NOT_READY; }

CUmemoryPool made(CUmemoryPool pool) {
  CUmemPoolProps props = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  next_made = pool;
  CUmemoryPool out = nullptr;
  EXPECT_EQ(cuMemPoolCreate(&out, &props), CUDA_SUCCESS);
  return out;
}

Pool* known(CUmemoryPool pool) {
  bool foreign = false;
  return known_pool(state(), pool, &foreign);
}

class EndingPools : public ::testing::Test {
 protected:
  void SetUp() override {
    reset_fake_driver(256 * kMiB);
    pool_bytes = {{kDefault, 0}};
    the_current = kDefault;
    unknown_handles = 0;
    last_address = 0x7000000;
    in_destroy = in_current = in_query = in_trim = after_attribute = [] {};
    install(kFn_cuMemPoolCreate, make);
    install(kFn_cuMemPoolDestroy, destroy);
    install(kFn_cuMemPoolGetAttribute, attribute);
    install(kFn_cuMemPoolTrimTo, trim_to);
    install(kFn_cuMemAllocFromPoolAsync, alloc_from);
    install(kFn_cuMemAllocAsync, alloc);
    install(kFn_cuMemFreeAsync, free_pooled);
    install(kFn_cuDeviceGetMemPool, get_current);
    install(kFn_cuDeviceGetDefaultMemPool, get_default);
    install(kFn_cuMemGetDefaultMemPool, no_default);
    install(kFn_cuStreamQuery, query);
  }
};

TEST_F(EndingPools, PoolMadeWhileAnotherIsDestroyedIsCounted) {
  made(kFirst);
  CUdeviceptr last = 0;
  ASSERT_EQ(cuMemAllocFromPoolAsync(&last, 8 << 20, kFirst, nullptr), CUDA_SUCCESS);
  std::int64_t charged_meanwhile = 0;
  in_destroy = [&] {
    std::thread([&] {
      EXPECT_EQ(cuMemFreeAsync(last, nullptr), CUDA_SUCCESS);
      charged_meanwhile = charged_bytes();
      made(kSecond);
    }).join();
  };
  EXPECT_EQ(cuMemPoolDestroy(kFirst), CUDA_SUCCESS);
  EXPECT_EQ(charged_meanwhile, 32 * kMiB) << "the driver still has it";
  EXPECT_EQ(charged_bytes(), 0);
  EXPECT_NE(known(kSecond), nullptr);
  CUdeviceptr p = 0;
  EXPECT_EQ(cuMemAllocFromPoolAsync(&p, 8 << 20, kSecond, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(charged_bytes(), 32 * kMiB);
}

TEST_F(EndingPools, DestroyedPoolIsCreditedWithItsLastFree) {
  made(kFirst);
  CUdeviceptr last = 0;
  ASSERT_EQ(cuMemAllocFromPoolAsync(&last, 8 << 20, kFirst, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPoolDestroy(kFirst), CUDA_SUCCESS);
  EXPECT_EQ(charged_bytes(), 32 * kMiB);
  EXPECT_EQ(cuMemFreeAsync(last, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(charged_bytes(), 0);
}

TEST_F(EndingPools, AllocationDuringPoolDestructionIsServedByTheNext) {
  made(kFirst);
  the_current = kFirst;
  in_current = [] {
    in_current = [] {};
    EXPECT_EQ(cuMemPoolDestroy(kFirst), CUDA_SUCCESS);
    the_current = kDefault;
  };
  CUdeviceptr p = 0;
  EXPECT_EQ(cuMemAllocAsync(&p, size_t{10} << 30, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(pool_bytes[kDefault], 0);
  EXPECT_EQ(cuMemAllocAsync(&p, 1 << 20, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(charged_bytes(), 32 * kMiB);
}

// The current pool is destroyed after its handle is known and before anything is taken from it.
TEST_F(EndingPools, FailedAllocationOfADestroyedPoolIsServedByTheNext) {
  made(kFirst);
  the_current = kFirst;
  ASSERT_TRUE(take(state(), 0, 256 * kMiB));
  in_query = [] {
    in_query = [] {};
    EXPECT_EQ(cuMemPoolDestroy(kFirst), CUDA_SUCCESS);
    the_current = kDefault;
    put(0, 64 * kMiB);
  };
  CUdeviceptr p = 0;
  EXPECT_EQ(cuMemAllocAsync(&p, 1 << 20, a_stream()), CUDA_SUCCESS);
  EXPECT_EQ(pool_bytes[kDefault], 32 * kMiB);
  EXPECT_EQ(charged_bytes(), (256 - 64 + 32) * kMiB);
}

TEST_F(EndingPools, DriverIsNotAskedAboutADestroyedPool) {
  made(kFirst);
  CUdeviceptr p = 0;
  ASSERT_EQ(cuMemAllocFromPoolAsync(&p, 8 << 20, kFirst, nullptr), CUDA_SUCCESS);
  Pool* pool = known(kFirst);
  EXPECT_EQ(cuMemPoolDestroy(kFirst), CUDA_SUCCESS);
  EXPECT_FALSE(may_serve(*pool, 1 << 20));
  was_in_pieces(*pool, 1 << 20);
  trim(*pool);
  settle(state(), *pool, 0, nullptr);
  EXPECT_EQ(unknown_handles, 0);
  EXPECT_EQ(charged_bytes(), 32 * kMiB);
}

TEST_F(EndingPools, PoolIsNotDestroyedDuringATrim) {
  made(kFirst);
  Pool* pool = known(kFirst);
  std::thread destroyer;
  std::atomic<bool> trimmed{false};
  std::atomic<bool> destroyed{false};
  bool in_order = false;
  in_destroy = [&] {
    in_order = trimmed;
    destroyed = true;
  };
  in_trim = [&] {
    destroyer = std::thread([] { EXPECT_EQ(cuMemPoolDestroy(kFirst), CUDA_SUCCESS); });
    while (!pool->destroyed.load()) std::this_thread::yield();
    for (int i = 0; i < 50 && !destroyed; ++i) sleep_ms(1);
    trimmed = true;
  };
  trim(*pool);
  destroyer.join();
  EXPECT_TRUE(in_order);
}

// The pool releases memory and then grows by as much for the other thread: two equal readings do
// not mean that nothing has changed.
TEST_F(EndingPools, GrowthAfterAConcurrentReadIsCharged) {
  CUdeviceptr p = 0;
  ASSERT_EQ(cuMemAllocAsync(&p, 1 << 20, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAllocAsync(&p, 1 << 20, nullptr), CUDA_SUCCESS);
  pool_bytes[kDefault] -= 32 * kMiB;
  std::atomic<int> readers{0};
  std::atomic<bool> settled{false};
  std::thread other;
  after_attribute = [&] {
    if (readers++ > 0) return;
    other = std::thread([&] {
      CUdeviceptr its = 0;
      EXPECT_EQ(cuMemAllocAsync(&its, 1 << 20, nullptr), CUDA_SUCCESS);
      settled = true;
    });
    for (int i = 0; i < 50 && !settled; ++i) sleep_ms(1);
  };
  settle_pools(0);
  other.join();
  EXPECT_EQ(pool_bytes[kDefault], 64 * kMiB);
  EXPECT_EQ(charged_bytes(), 64 * kMiB);
}

// The allocation may wait at the gate until other leases have had their turn.
TEST_F(EndingPools, AllocationThatWaitsAtTheGateIsNotWaitedFor) {
  made(kFirst);
  known(kFirst)->stays = true;
  State& s = state();
  Gate& gate = gate_of(s).gate;
  s.roles = kSwaps;
  gate.set(GateState::kShut);
  std::thread other([] {
    CUdeviceptr p = 0;
    EXPECT_EQ(cuMemAllocFromPoolAsync(&p, 8 << 20, kFirst, a_stream()), CUDA_SUCCESS);
  });
  while (gate.waiting() == 0) sleep_ms(1);
  EXPECT_FALSE(under_way(state().slots[0], last_ticket(state().slots[0])));
  gate.set(GateState::kOpen);
  other.join();
  s.roles = 0;
  EXPECT_EQ(pool_bytes[kFirst], 32 * kMiB);
}

}  // namespace
}  // namespace gpurota::interposer_test
