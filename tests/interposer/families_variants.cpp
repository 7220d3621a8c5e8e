// Variants of the same families: older and newer versions of functions, per-thread stream variants,
// unusual ways to look up entry points, and GPUs outside the lease. Part of probe_families: a lease
// of 256 MiB on the first of two GPUs.
#include "tests/driver/api.h"
#include "tests/driver/device_memory.h"
#include "tests/interposer/families_probe.h"

#include <climits>
#include <cstring>
#include <vector>

#include <dlfcn.h>

namespace {

bool is_ours(void* pointer) {
  Dl_info info = {};
  return ::dladdr(pointer, &info) != 0 && info.dli_fname != nullptr &&
         std::strstr(info.dli_fname, "libgpurota") != nullptr;
}

CUmemPoolProps pool_on(int device, CUmemAllocationHandleType handles = CU_MEM_HANDLE_TYPE_NONE) {
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.handleTypes = handles;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  return properties;
}

// A graph that allocates on `device`, and frees that memory unless `frees` is false.
CUresult make_graph(CUgraph* graph, std::size_t bytes, int device = 0, bool frees = true) {
  CUDA_MEM_ALLOC_NODE_PARAMS params = {};
  params.poolProps = pool_on(device);
  params.bytesize = bytes;
  CUgraphNode made = nullptr, freed = nullptr;
  CUresult result = cuGraphCreate(graph, 0);
  if (result == CUDA_SUCCESS) {
    result = cuGraphAddMemAllocNode(&made, *graph, nullptr, 0, &params);
  }
  if (result != CUDA_SUCCESS || !frees) return result;
  return cuGraphAddMemFreeNode(&freed, *graph, &made, 1, params.dptr);
}

using Alloc = CUresult(CUdeviceptr*, std::size_t, CUstream);
using AllocFrom = CUresult(CUdeviceptr*, std::size_t, CUmemoryPool, CUstream);
using Free = CUresult(CUdeviceptr, CUstream);
using OnExec = CUresult(CUgraphExec, CUstream);

}  // namespace

DRIVER_CHECK(allocations_in_the_per_thread_stream_are_charged_like_others) {
  const auto alloc = function<Alloc>("cuMemAllocAsync_ptsz");
  const auto alloc_from = function<AllocFrom>("cuMemAllocFromPoolAsync_ptsz");
  const auto free = function<Free>("cuMemFreeAsync_ptsz");
  const auto synchronize = function<CUresult(CUstream)>("cuStreamSynchronize_ptsz");
  const WithContext with;
  CUmemoryPool pool = nullptr;
  CUdeviceptr one = 0, two = 0, more = 0;
  const auto properties = pool_on(0);
  EXPECT_OK(cuMemPoolCreate(&pool, &properties));
  EXPECT_OK(alloc(&one, 96 * kMiB, nullptr));
  EXPECT_OK(alloc_from(&two, 96 * kMiB, pool, nullptr));
  EXPECT_SAME(charged(), std::size_t{192});
  EXPECT_CODE(alloc(&more, 96 * kMiB, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_CODE(alloc_from(&more, 96 * kMiB, pool, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_OK(free(one, nullptr));
  EXPECT_OK(free(two, nullptr));
  EXPECT_OK(synchronize(nullptr));
  EXPECT_OK(cuMemPoolDestroy(pool));
  EXPECT_SAME(charged(), std::size_t{0});
}

DRIVER_CHECK(a_context_of_any_version_has_what_is_allocated_in_it) {
  using Create = CUresult(CUcontext*, unsigned, CUdevice);
  const auto first = function<Create>("cuCtxCreate");
  const auto third = function<CUresult(CUcontext*, CUexecAffinityParam*, int, unsigned, CUdevice)>(
      "cuCtxCreate_v3");
  const auto fourth =
      function<CUresult(CUcontext*, CUctxCreateParams*, unsigned, CUdevice)>("cuCtxCreate_v4");
  for (int version = 1; version <= 4; ++version) {
    CUcontext context = nullptr;
    CUdeviceptr p = 0;
    EXPECT_OK(version == 1   ? first(&context, 0, 0)
              : version == 3 ? third(&context, nullptr, 0, 0, 0)
              : version == 4 ? fourth(&context, nullptr, 0, 0)
                             : cuCtxCreate_v2(&context, 0, 0));
    EXPECT_OK(cuMemAlloc_v2(&p, 160 * kMiB));
    EXPECT_SAME(charged(), std::size_t{160});
    EXPECT_OK(cuCtxDestroy_v2(context));
    EXPECT_CODE(version == 1   ? first(&context, 0, 1)
                : version == 3 ? third(&context, nullptr, 0, 0, 1)
                : version == 4 ? fourth(&context, nullptr, 0, 1)
                               : cuCtxCreate_v2(&context, 0, 1),
                CUDA_ERROR_OUT_OF_MEMORY);
  }
  const WithContext with;
  EXPECT_SAME(charged(), std::size_t{0});
}

DRIVER_CHECK(a_graph_is_held_to_the_limit_however_it_is_instantiated_and_launched) {
  using Instantiate = CUresult(CUgraphExec*, CUgraph, CUgraphNode*, char*, std::size_t);
  using WithParams = CUresult(CUgraphExec*, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS*);
  const WithContext with;
  const auto instantiate = [](int way, CUgraphExec* exec, CUgraph graph) {
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {};
    switch (way) {
      case 0:
        return function<Instantiate>("cuGraphInstantiate")(exec, graph, nullptr, nullptr, 0);
      case 1:
        return function<Instantiate>("cuGraphInstantiate_v2")(exec, graph, nullptr, nullptr, 0);
      case 2:
        return function<WithParams>("cuGraphInstantiateWithParams")(exec, graph, &params);
      case 3:
        return function<WithParams>("cuGraphInstantiateWithParams_ptsz")(exec, graph, &params);
      case 4:
        params.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
        return function<WithParams>("cuGraphInstantiateWithParams")(exec, graph, &params);
      default:
        return cuGraphInstantiateWithFlags(exec, graph, 0);
    }
  };
  const auto upload = function<OnExec>("cuGraphUpload_ptsz");
  const auto launch = function<OnExec>("cuGraphLaunch_ptsz");
  const auto synchronize = function<CUresult(CUstream)>("cuStreamSynchronize_ptsz");
  for (int way = 0; way < 6; ++way) {
    CUgraph small = nullptr, large = nullptr;
    CUgraphExec exec = nullptr, other = nullptr;
    EXPECT_OK(make_graph(&small, 64 * kMiB));
    EXPECT_OK(make_graph(&large, 300 * kMiB));
    EXPECT_OK(instantiate(way, &exec, small));
    EXPECT_OK(upload(exec, nullptr));
    EXPECT_OK(launch(exec, nullptr));
    EXPECT_OK(launch(exec, nullptr));
    EXPECT_OK(synchronize(nullptr));
    EXPECT_SAME(charged(), std::size_t{64});
    const CUresult too_much = instantiate(way, &other, large);
    if (too_much == CUDA_SUCCESS) {
      EXPECT_CODE(upload(other, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
      EXPECT_CODE(launch(other, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
      EXPECT_OK(cuGraphExecDestroy(other));
    } else {
      EXPECT_CODE(too_much, CUDA_ERROR_OUT_OF_MEMORY);
    }
    EXPECT_OK(cuGraphExecDestroy(exec));
    EXPECT_OK(cuGraphDestroy(small));
    EXPECT_OK(cuGraphDestroy(large));
    EXPECT_OK(cuDeviceGraphMemTrim(0));
    EXPECT_SAME(charged(), std::size_t{0});
  }
}

// The memory is held until the next launch, which frees it.
DRIVER_CHECK(a_graph_that_frees_at_its_next_launch_is_charged_once) {
  const WithContext with;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  EXPECT_OK(make_graph(&graph, 96 * kMiB, 0, false));
  EXPECT_OK(
      cuGraphInstantiateWithFlags(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
  for (int i = 0; i < 4; ++i) {
    EXPECT_OK(cuGraphLaunch(exec, nullptr));
    EXPECT_OK(cuStreamSynchronize(nullptr));
    EXPECT_SAME(charged(), std::size_t{96});
  }
  EXPECT_OK(cuGraphExecDestroy(exec));
  EXPECT_OK(cuGraphDestroy(graph));
}

namespace {

CUresult set_by_location(CUdevice device, CUmemoryPool pool) {
  CUmemLocation place = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  return function<CUresult(CUmemLocation*, CUmemAllocationType, CUmemoryPool)>("cuMemSetMemPool")(
      &place, CU_MEM_ALLOCATION_TYPE_PINNED, pool);
}

void check_charge_of_current_pool(CUresult (*set)(CUdevice, CUmemoryPool)) {
  const auto get = function<CUresult(CUmemoryPool*, CUdevice)>("cuDeviceGetMemPool");
  const WithContext with;
  CUmemoryPool pool = nullptr, before = nullptr;
  CUdeviceptr p = 0;
  const auto properties = pool_on(0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  const std::size_t had = charged();
  EXPECT_OK(get(&before, 0));
  EXPECT_OK(cuMemAllocAsync(&p, kMiB, nullptr));
  EXPECT_OK(cuMemFreeAsync(p, nullptr));
  EXPECT_OK(cuStreamSynchronize(nullptr));
  EXPECT_OK(cuMemPoolCreate(&pool, &properties));
  EXPECT_OK(set(0, pool));
  EXPECT_OK(cuMemAllocAsync(&p, 128 * kMiB, nullptr));
  EXPECT_SAME(charged() - had, std::size_t{128});
  EXPECT_OK(cuMemFreeAsync(p, nullptr));
  EXPECT_OK(cuStreamSynchronize(nullptr));
  EXPECT_OK(set(0, before));
  EXPECT_OK(cuMemPoolDestroy(pool));
  EXPECT_SAME(charged(), had);
}

}  // namespace

DRIVER_CHECK(an_allocation_is_charged_to_the_pool_that_was_made_current) {
  check_charge_of_current_pool(function<CUresult(CUdevice, CUmemoryPool)>("cuDeviceSetMemPool"));
}

DRIVER_CHECK(an_allocation_is_charged_to_the_pool_that_was_made_current_by_location) {
  check_charge_of_current_pool(set_by_location);
}

// A stream may allocate from the pool of any GPU, and a graph may have memory on any GPU, without a
// context there.
DRIVER_CHECK(memory_on_a_gpu_that_is_not_of_the_lease_is_refused_by_pools_and_graphs) {
  const auto default_pool =
      function<CUresult(CUmemoryPool*, CUdevice)>("cuDeviceGetDefaultMemPool");
  const WithContext with;
  CUmemoryPool pool = nullptr;
  CUdeviceptr p = 0;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  const auto properties = pool_on(1);
  EXPECT_CODE(cuMemPoolCreate(&pool, &properties), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_OK(default_pool(&pool, 1));
  EXPECT_CODE(cuMemAllocFromPoolAsync(&p, kMiB, pool, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  if (make_graph(&graph, kMiB, 1) == CUDA_SUCCESS) {
    EXPECT_CODE(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_OUT_OF_MEMORY);
  }
  if (graph != nullptr) EXPECT_OK(cuGraphDestroy(graph));
}

DRIVER_CHECK(no_pool_is_uncounted_however_many_there_are) {
  const WithContext with;
  const auto properties = pool_on(0);
  std::vector<CUmemoryPool> pools;
  CUmemoryPool pool = nullptr;
  CUdeviceptr p = 0;
  CUresult result = CUDA_SUCCESS;
  while (pools.size() < 1000) {
    result = cuMemPoolCreate(&pool, &properties);
    if (result != CUDA_SUCCESS) break;
    pools.push_back(pool);
  }
  EXPECT_CODE(result, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(pools.size() > 256);
  EXPECT_OK(cuMemAllocFromPoolAsync(&p, 32 * kMiB, pools.back(), nullptr));
  EXPECT_SAME(charged(), std::size_t{32});
  EXPECT_OK(cuMemFreeAsync(p, nullptr));
  EXPECT_OK(cuStreamSynchronize(nullptr));
  for (CUmemoryPool each : pools) EXPECT_OK(cuMemPoolDestroy(each));
  EXPECT_OK(cuMemPoolCreate(&pool, &properties));  // there is room again
  EXPECT_OK(cuMemPoolDestroy(pool));
  EXPECT_SAME(charged(), std::size_t{0});
}

// cuMemRetainAllocationHandle() returns a handle of the memory at an address. The handle keeps the
// memory, even after the memory was unmapped. The number of the handle may be new or already known.
DRIVER_CHECK(memory_is_charged_until_its_last_handle_is_released_wherever_that_came_from) {
  const WithContext with;
  constexpr std::size_t kSize = 64 * kMiB;
  const auto prop = device_memory();
  CUdeviceptr range = 0;
  CUmemGenericAllocationHandle handle = 0, two = 0, three = 0;
  EXPECT_OK(cuMemAddressReserve(&range, 2 * kSize, 0, 0, 0));
  EXPECT_OK(cuMemCreate(&handle, kSize, &prop, 0));
  EXPECT_OK(cuMemMap(range, kSize, 0, handle, 0));
  EXPECT_OK(cuMemMap(range + kSize, kSize, 0, handle, 0));
  EXPECT_OK(cuMemRelease(handle));
  EXPECT_OK(cuMemRetainAllocationHandle(&two, reinterpret_cast<void*>(range)));
  EXPECT_OK(cuMemRetainAllocationHandle(&three, reinterpret_cast<void*>(range + kSize + kMiB)));
  EXPECT_OK(cuMemUnmap(range, 2 * kSize));
  EXPECT_OK(cuMemAddressFree(range, 2 * kSize));
  EXPECT_SAME(charged(), std::size_t{64});
  EXPECT_OK(cuMemRelease(two));
  EXPECT_SAME(charged(), std::size_t{64});
  EXPECT_OK(cuMemRelease(three));
  EXPECT_SAME(charged(), std::size_t{0});
  EXPECT_CODE(cuMemRelease(three), CUDA_ERROR_INVALID_VALUE);
  EXPECT_SAME(charged(), std::size_t{0});
}

// Each call reaches the driver, which refuses it, and nothing is credited for it.
DRIVER_CHECK(wrong_frees_and_second_frees_credit_nothing) {
  const WithContext with;
  CUdeviceptr linear = 0, pooled = 0, rest = 0;
  EXPECT_OK(cuMemAlloc_v2(&linear, 64 * kMiB));
  EXPECT_OK(cuMemAllocAsync(&pooled, 64 * kMiB, nullptr));
  EXPECT_OK(cuStreamSynchronize(nullptr));
  for (int i = 0; i < 3; ++i) {
    EXPECT_OK(cuMemFree_v2(0));
    EXPECT_TRUE(cuMemFree_v2(linear + 4096) != CUDA_SUCCESS);
    EXPECT_TRUE(cuMemFree_v2(pooled + 4096) != CUDA_SUCCESS);
    EXPECT_TRUE(cuMemFree_v2(12345) != CUDA_SUCCESS);
    EXPECT_TRUE(cuMemFreeAsync(pooled + 4096, nullptr) != CUDA_SUCCESS);
  }
  EXPECT_SAME(charged(), std::size_t{128});
  EXPECT_OK(cuMemFree_v2(linear));
  EXPECT_TRUE(cuMemFree_v2(linear) != CUDA_SUCCESS);
  EXPECT_OK(cuMemFree_v2(pooled));  // allowed for memory of a pool too
  EXPECT_TRUE(cuMemFree_v2(pooled) != CUDA_SUCCESS);
  EXPECT_SAME(charged(), std::size_t{0});
  EXPECT_CODE(cuMemAlloc_v2(&rest, 260 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_OK(cuMemAlloc_v2(&rest, 256 * kMiB));
  EXPECT_OK(cuMemFree_v2(rest));
}

// The driver selects a function by version and flags; libgpurota hooks every one of them.
DRIVER_CHECK(an_entry_point_is_ours_whatever_version_and_flags_ask_for_it) {
  EXPECT_OK(cuInit(0));
  const int versions[] = {INT_MIN, -1,    0,     1,     2000,  3019,  3020,  4000,   7000,
                          10000,   11020, 11040, 12000, 12050, 13000, 99999, INT_MAX};
  const cuuint64_t flags[] = {0, 1, 2, 3, 4, ~cuuint64_t{0}};
  int found = 0;
  for (const char* name : {"cuMemAlloc",
                           "cuMemAllocPitch",
                           "cuMemAllocManaged",
                           "cuMemAllocAsync",
                           "cuMemAllocFromPoolAsync",
                           "cuMemFree",
                           "cuMemFreeAsync",
                           "cuMemCreate",
                           "cuMemRelease",
                           "cuMemMap",
                           "cuMemUnmap",
                           "cuArrayCreate",
                           "cuArray3DCreate",
                           "cuMipmappedArrayCreate",
                           "cuCtxCreate",
                           "cuCtxDestroy",
                           "cuDevicePrimaryCtxRetain",
                           "cuDevicePrimaryCtxRelease",
                           "cuMemGetInfo",
                           "cuDeviceTotalMem",
                           "cuGraphInstantiate",
                           "cuGraphLaunch",
                           "cuGraphUpload",
                           "cuMemPoolCreate",
                           "cuMulticastCreate",
                           "cuGetProcAddress",
                           "cuInit"}) {
    for (const int version : versions) {
      for (const cuuint64_t flag : flags) {
        void* one = nullptr;
        void* two = nullptr;
        CUdriverProcAddressQueryResult status = {};
        if (cuGetProcAddress_v2(name, &one, version, flag, &status) == CUDA_SUCCESS && one) {
          EXPECT_TRUE(is_ours(one));
          ++found;
        }
        if (cuGetProcAddress(name, &two, version, flag) == CUDA_SUCCESS && two) {
          EXPECT_TRUE(is_ours(two) && one == two);
        }
      }
    }
  }
  EXPECT_TRUE(found > 200);
  void* none = nullptr;
  EXPECT_TRUE(cuGetProcAddress_v2(nullptr, &none, 12000, 0, nullptr) != CUDA_SUCCESS);
  EXPECT_TRUE(cuGetProcAddress_v2("cuMemAlloc", nullptr, 12000, 0, nullptr) != CUDA_SUCCESS);
  EXPECT_TRUE(cuGetProcAddress_v2("", &none, 12000, 0, nullptr) != CUDA_SUCCESS || none == nullptr);
}
