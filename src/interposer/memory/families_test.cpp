// Families that the simulated driver lacks, and races that only a fake driver can arrange.
#include "interposer/account/device.h"
#include "interposer/account/state.h"
#include "interposer/driver/driver.h"
#include "interposer/memory/fake_driver_test.h"
#include "interposer/memory/pool_charge.h"
#include "interposer/memory/vmm.h"

#include <gtest/gtest.h>

#include <thread>

namespace gpurota::interposer_test {
namespace {

using namespace gpurota::interposer;

CUresult multicast_create(CUmemGenericAllocationHandle* out, const CUmulticastObjectProp*) {
  return *out = 500, CUDA_SUCCESS;
}
CUresult bind_memory(CUmemGenericAllocationHandle, size_t, CUmemGenericAllocationHandle, size_t,
                     size_t, unsigned long long) {
  return CUDA_SUCCESS;
}
CUresult bind_address(CUmemGenericAllocationHandle, size_t, CUdeviceptr, size_t,
                      unsigned long long) {
  return CUDA_SUCCESS;
}
CUresult unbind(CUmemGenericAllocationHandle, CUdevice, size_t, size_t) { return CUDA_SUCCESS; }
CUresult release(CUmemGenericAllocationHandle) { return CUDA_SUCCESS; }
CUresult unmap(CUdeviceptr, size_t) { return CUDA_SUCCESS; }
CUresult map_array(CUarrayMapInfo*, unsigned, CUstream) { return CUDA_SUCCESS; }
CUresult destroy_array(CUarray) { return CUDA_SUCCESS; }

CUgreenCtx the_green() { return reinterpret_cast<CUgreenCtx>(std::uintptr_t{0x3000}); }
CUcontext the_view() { return reinterpret_cast<CUcontext>(std::uintptr_t{0x3100}); }
CUcontext the_context() { return reinterpret_cast<CUcontext>(std::uintptr_t{0x1000}); }
int primary_active = 0;

CUresult primary_state(CUdevice, unsigned* flags, int* active) {
  *flags = 0;
  return *active = primary_active, CUDA_SUCCESS;
}
CUresult attach_context(CUcontext* out, unsigned) { return *out = the_context(), CUDA_SUCCESS; }
CUresult detach_context(CUcontext) { return CUDA_SUCCESS; }
// Another thread gets the same handle before this call returns.
CUresult destroy_and_reuse(CUcontext context) {
  add_context(context, 0, 0, false, true);
  return CUDA_SUCCESS;
}
CUresult destroy_fails(CUcontext) { return CUDA_ERROR_UNKNOWN; }
// A tool's callback allocates while the context is destroyed.
CUdeviceptr of_a_callback = 0;
CUresult destroy_with_callback(CUcontext) { return cuMemAlloc_v2(&of_a_callback, 8 << 20); }
CUresult green_destroy(CUgreenCtx) { return primary_active = 0, CUDA_SUCCESS; }
CUresult view_current(CUcontext* out) { return *out = the_view(), CUDA_SUCCESS; }

CUmemoryPool the_pool() { return reinterpret_cast<CUmemoryPool>(std::uintptr_t{0x5000}); }
CUresult make_pool(CUmemoryPool* out, const CUmemPoolProps*) {
  return *out = the_pool(), CUDA_SUCCESS;
}
CUresult managed_default(CUmemoryPool* out, CUmemLocation*, CUmemAllocationType type) {
  *out = the_pool();
  return type == CU_MEM_ALLOCATION_TYPE_MANAGED ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult take_from_pool(CUdeviceptr* out, size_t, CUmemoryPool, CUstream) {
  return *out = 0x700000, CUDA_SUCCESS;
}

// A pool that is destroyed while another thread uses it.
std::int64_t of_the_pool = 0;
int taken_from_pool = 0;
CUresult the_alloc_result = CUDA_SUCCESS;
std::thread destroyer;
CUresult reserved_of(CUmemoryPool, CUmemPool_attribute, void* value) {
  *static_cast<std::int64_t*>(value) = of_the_pool;
  return CUDA_SUCCESS;
}
CUresult free_pooled(CUdeviceptr, CUstream) { return CUDA_SUCCESS; }
CUresult destroy_pool(CUmemoryPool) { return CUDA_SUCCESS; }
CUresult destroy_pool_in_use(CUmemoryPool pool) {
  CUdeviceptr p = 0;
  the_alloc_result = cuMemAllocFromPoolAsync(&p, 8 << 20, pool, nullptr);
  return CUDA_SUCCESS;
}
CUresult grow_pool(CUdeviceptr* out, size_t, CUmemoryPool, CUstream) {
  ++taken_from_pool;
  of_the_pool += 32 * kMiB;
  return *out = 0x700000, CUDA_SUCCESS;
}
CUresult grow_pool_that_goes(CUdeviceptr* out, size_t size, CUmemoryPool pool, CUstream stream) {
  bool foreign = false;
  const Pool* known = known_pool(state(), pool, &foreign);
  destroyer = std::thread([pool] { EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS); });
  while (!known->destroyed.load()) std::this_thread::yield();
  return grow_pool(out, size, pool, stream);
}
CUresult no_default(CUmemoryPool*, CUmemLocation*, CUmemAllocationType) {
  return CUDA_ERROR_INVALID_VALUE;
}
CUmemoryPool made_pool() {
  of_the_pool = taken_from_pool = 0;
  install(kFn_cuMemGetDefaultMemPool, no_default);
  install(kFn_cuMemPoolCreate, make_pool);
  install(kFn_cuMemPoolGetAttribute, reserved_of);
  install(kFn_cuMemAllocFromPoolAsync, grow_pool);
  CUmemPoolProps props = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool = nullptr;
  EXPECT_EQ(cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
  return pool;
}

std::size_t limit_set = 0;
CUresult get_limit(size_t* value, CUlimit) { return *value = 8 << 20, CUDA_SUCCESS; }
CUresult set_limit(CUlimit, size_t value) { return limit_set = value, CUDA_SUCCESS; }

// A graph that has itself as its child, without end.
CUgraphNode the_node() { return reinterpret_cast<CUgraphNode>(std::uintptr_t{0x8000}); }
CUresult one_node(CUgraph, CUgraphNode* nodes, size_t* count) {
  if (nodes != nullptr) *nodes = the_node();
  return *count = 1, CUDA_SUCCESS;
}
CUresult is_a_graph(CUgraphNode, CUgraphNodeType* type) {
  return *type = CU_GRAPH_NODE_TYPE_GRAPH, CUDA_SUCCESS;
}
CUresult child_of(CUgraphNode, CUgraph* graph) {
  return *graph = reinterpret_cast<CUgraph>(std::uintptr_t{0x8100}), CUDA_SUCCESS;
}
int made_ready = 0;
CUresult make_ready(CUgraphExec*, CUgraph, unsigned long long) {
  return ++made_ready, CUDA_SUCCESS;
}

class Families : public ::testing::Test {
 protected:
  void SetUp() override {
    reset_fake_driver(256 * kMiB);
    install(kFn_cuMulticastCreate, multicast_create);
    install(kFn_cuMulticastBindMem, bind_memory);
    install(kFn_cuMulticastBindAddr, bind_address);
    install(kFn_cuMulticastUnbind, unbind);
    install(kFn_cuMemRelease, release);
    install(kFn_cuMemUnmap, unmap);
    install(kFn_cuMemMapArrayAsync, map_array);
    install(kFn_cuArrayDestroy, destroy_array);
    install(kFn_cuDevicePrimaryCtxGetState, primary_state);
    install(kFn_cuCtxAttach, attach_context);
    install(kFn_cuCtxDetach, detach_context);
    install(kFn_cuGreenCtxDestroy, green_destroy);
  }
  // 64 MiB behind handle 7, charged.
  void create() {
    ASSERT_TRUE(take(64));
    vmm_created(state(), 7, 64 * kMiB, 0);
  }
  static bool take(std::int64_t mib) {
    state().slots[0].headroom.fetch_sub(mib * kMiB);
    return true;
  }
};

TEST_F(Families, MemoryBoundToAMulticastObjectLivesUntilItIsUnbound) {
  create();
  CUmemGenericAllocationHandle object = 0;
  ASSERT_EQ(cuMulticastCreate(&object, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuMulticastBindMem(object, 0, 7, 0, 64 * kMiB, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemRelease(7), CUDA_SUCCESS);
  EXPECT_EQ(charged_bytes(), 64 * kMiB);
  ASSERT_EQ(cuMulticastUnbind(object, 0, 0, 64 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(charged_bytes(), 0);
}

TEST_F(Families, MemoryBoundByAddressEndsWithTheMulticastObject) {
  create();
  vmm_mapped(state(), std::uint64_t{1} << 30, 64 * kMiB, 7);
  CUmemGenericAllocationHandle object = 0;
  ASSERT_EQ(cuMulticastCreate(&object, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuMulticastBindAddr(object, 0, (1u << 30) + (2 << 20), 2 << 20, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemRelease(7), CUDA_SUCCESS);
  ASSERT_EQ(cuMemUnmap(1u << 30, 64 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(charged_bytes(), 64 * kMiB);
  ASSERT_EQ(cuMemRelease(object), CUDA_SUCCESS);
  EXPECT_EQ(charged_bytes(), 0);
}

TEST_F(Families, SparseArrayMemoryLivesUntilUnmappedOrArrayDestroyed) {
  for (const bool unmaps : {true, false}) {
    create();
    CUarrayMapInfo part = {};
    part.resource.array = reinterpret_cast<CUarray>(std::uintptr_t{0x4000});
    part.subresource.sparseLevel.extentWidth = 64;
    part.memOperationType = CU_MEM_OPERATION_TYPE_MAP;
    part.memHandle.memHandle = 7;
    ASSERT_EQ(cuMemMapArrayAsync(&part, 1, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(cuMemRelease(7), CUDA_SUCCESS);
    EXPECT_EQ(charged_bytes(), 64 * kMiB);
    part.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP;
    ASSERT_EQ(unmaps ? cuMemMapArrayAsync(&part, 1, nullptr) : cuArrayDestroy(part.resource.array),
              CUDA_SUCCESS);
    EXPECT_EQ(charged_bytes(), 0);
  }
}

TEST_F(Families, LastDetachEndsAContext) {
  add_context(the_context(), 0, 0, false, true);
  CUdeviceptr p = 0;
  CUcontext context = nullptr;
  ASSERT_EQ(cuMemAlloc_v2(&p, 8 << 20), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxAttach(&context, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxDetach(context), CUDA_SUCCESS);
  EXPECT_EQ(charged_bytes(), 8 * kMiB);
  ASSERT_EQ(cuCtxDetach(context), CUDA_SUCCESS);
  EXPECT_EQ(charged_bytes(), 0);
}

TEST_F(Families, NewContextMayReuseTheHandleOfAnEndingOne) {
  const std::uint32_t serial = add_context(the_context(), 0, 0, false, true);
  install(kFn_cuCtxDestroy_v2, destroy_and_reuse);
  CUdeviceptr p = 0;
  ASSERT_EQ(cuMemAlloc_v2(&p, 8 << 20), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxDestroy_v2(the_context()), CUDA_SUCCESS);
  EXPECT_EQ(charged_bytes(), 0);
  EXPECT_EQ(place_of_context(the_context()).kind, Place::Kind::kSlot);
  EXPECT_NE(place_of_context(the_context()).context, serial);
}

TEST_F(Families, EndedContextIsNotRecordedAgainFromACallback) {
  add_context(the_context(), 0, 0, false, true);
  install(kFn_cuCtxDestroy_v2, destroy_with_callback);
  CUdeviceptr p = 0;
  ASSERT_EQ(cuMemAlloc_v2(&p, 16 << 20), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxDestroy_v2(the_context()), CUDA_SUCCESS);
  EXPECT_EQ(place_of_context(the_context()).kind, Place::Kind::kNoContext);
  EXPECT_FALSE(any_context());
  EXPECT_EQ(charged_bytes(), 8 * kMiB) << "charged until it is freed";
  EXPECT_EQ(cuMemFree_v2(of_a_callback), CUDA_SUCCESS);
  EXPECT_EQ(charged_bytes(), 0);
}

TEST_F(Families, ContextThatTheDriverDoesNotDestroyIsUnchanged) {
  const std::uint32_t serial = add_context(the_context(), 0, 0, false, true);
  install(kFn_cuCtxDestroy_v2, destroy_fails);
  CUdeviceptr p = 0;
  ASSERT_EQ(cuMemAlloc_v2(&p, 8 << 20), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxDestroy_v2(the_context()), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(charged_bytes(), 8 * kMiB);
  EXPECT_EQ(place_of_context(the_context()).context, serial);
}

TEST_F(Families, AllocationInAGreenContextBelongsToThePrimaryContext) {
  primary_active = 1;
  const std::uint32_t serial = add_context(the_context(), 0, 0, true, false);
  add_view(the_view(), the_green(), 0, 0, serial);
  install(kFn_cuCtxGetCurrent, view_current);
  CUdeviceptr p = 0;
  ASSERT_EQ(cuMemAlloc_v2(&p, 8 << 20), CUDA_SUCCESS);
  EXPECT_EQ(charged_bytes(), 8 * kMiB);
  ASSERT_EQ(cuGreenCtxDestroy(the_green()), CUDA_SUCCESS);  // the last to retain the primary
  EXPECT_EQ(charged_bytes(), 0);
}

// Memory that the host touches never moves; it is charged like other memory where its GPU is named.
TEST_F(Families, PoolOfManagedMemoryDoesNotMove) {
  install(kFn_cuMemPoolCreate, make_pool);
  CUmemPoolProps managed = {};
  managed.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
  managed.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool = nullptr;
  ASSERT_EQ(cuMemPoolCreate(&pool, &managed), CUDA_SUCCESS);
  bool foreign = false;
  const Pool* known = known_pool(state(), pool, &foreign);
  ASSERT_NE(known, nullptr);
  EXPECT_TRUE(known->stays);
}

TEST_F(Families, DefaultPoolOfManagedMemoryDoesNotMove) {
  install(kFn_cuMemGetDefaultMemPool, managed_default);
  bool foreign = false;
  const Pool* known = known_pool(state(), the_pool(), &foreign);
  ASSERT_NE(known, nullptr);
  EXPECT_TRUE(known->stays);
  CUmemoryPool of_gpu = nullptr;
  ASSERT_EQ(GPUROTA_REAL(cuDeviceGetDefaultMemPool)(&of_gpu, 0), CUDA_SUCCESS);
  EXPECT_FALSE(known_pool(state(), of_gpu, &foreign)->stays);
}

// No argument tells the pool's GPU, so the pool is charged by what NVML shows.
TEST_F(Families, ManagedPoolWithoutALocationIsNotCharged) {
  install(kFn_cuMemPoolCreate, make_pool);
  install(kFn_cuMemAllocFromPoolAsync, take_from_pool);
  CUmemPoolProps managed = {};
  managed.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
  CUmemoryPool pool = nullptr;
  CUdeviceptr p = 0;
  ASSERT_EQ(cuMemPoolCreate(&pool, &managed), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAllocFromPoolAsync(&p, 64 << 20, pool, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(charged_bytes(), 0);
}

TEST_F(Families, NothingIsAllocatedFromAPoolThatIsBeingDestroyed) {
  const CUmemoryPool pool = made_pool();
  install(kFn_cuMemPoolDestroy, destroy_pool_in_use);
  EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
  EXPECT_EQ(the_alloc_result, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(taken_from_pool, 0);
}

TEST_F(Families, PendingAllocationOfADestroyedPoolIsCharged) {
  const CUmemoryPool pool = made_pool();
  install(kFn_cuMemPoolDestroy, destroy_pool);
  install(kFn_cuMemAllocFromPoolAsync, grow_pool_that_goes);
  install(kFn_cuMemFreeAsync, free_pooled);
  CUdeviceptr p = 0;
  EXPECT_EQ(cuMemAllocFromPoolAsync(&p, 8 << 20, pool, nullptr), CUDA_SUCCESS);
  destroyer.join();
  EXPECT_EQ(charged_bytes(), 32 * kMiB);
  EXPECT_EQ(cuMemFreeAsync(p, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(charged_bytes(), 0);
}

// The heap is charged according to what NVML shows, but a limit for which there is no room is
// refused without asking the driver.
TEST_F(Families, KernelHeapThatDoesNotFitIsRefused) {
  install(kFn_cuCtxGetLimit, get_limit);
  install(kFn_cuCtxSetLimit, set_limit);
  limit_set = 0;
  EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 300 << 20), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(limit_set, 0u);
  EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 200 << 20), CUDA_SUCCESS);
  EXPECT_EQ(limit_set, 200u << 20);
  EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 4 << 20), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096), CUDA_SUCCESS);
  EXPECT_EQ(charged_bytes(), 0);
}

TEST_F(Families, AGraphTooDeepToBeCountedIsRefused) {
  install(kFn_cuGraphGetNodes, one_node);
  install(kFn_cuGraphNodeGetType, is_a_graph);
  install(kFn_cuGraphChildGraphNodeGetGraph, child_of);
  install(kFn_cuGraphInstantiateWithFlags, make_ready);
  CUgraphExec exec = nullptr;
  EXPECT_EQ(
      cuGraphInstantiateWithFlags(&exec, reinterpret_cast<CUgraph>(std::uintptr_t{0x8100}), 0),
      CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(made_ready, 0);
}

TEST_F(Families, FragmentedPoolIsNotMadeToGrowTwice) {
  Pool* pool = add_pool(state(), reinterpret_cast<CUmemoryPool>(std::uintptr_t{0x2000}), 0, false);
  CUdeviceptr p = 0;
  ASSERT_EQ(cuMemAllocAsync(&p, 32 << 20, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFreeAsync(p, nullptr), CUDA_SUCCESS);
  EXPECT_TRUE(may_serve(*pool, 16 << 20));
  was_in_pieces(*pool, 16 << 20);
  EXPECT_FALSE(may_serve(*pool, 16 << 20));
  EXPECT_TRUE(may_serve(*pool, 8 << 20));
}

}  // namespace
}  // namespace gpurota::interposer_test
