// The rarer families of device memory under a lease of 256 MiB. Checks each family's charge by
// cuMemGetInfo, and that the charge ends with the memory. One check for each family, in one
// program.
#include "tests/interposer/families_probe.h"

#include "abi/cuda_external.h"
#include "tests/driver/api.h"
#include "tests/driver/device_memory.h"

#include <atomic>
#include <thread>
#include <vector>

#include <dlfcn.h>

namespace {

CUDA_ARRAY_DESCRIPTOR floats(std::size_t width, std::size_t height) {
  return {width, height, CU_AD_FORMAT_FLOAT, 1};
}

// A graph that allocates, writes and frees.
struct MemoryGraph {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;

  bool make(std::size_t bytes) {
    CUDA_MEM_ALLOC_NODE_PARAMS params = {};
    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    params.bytesize = bytes;
    CUgraphNode made = nullptr, freed = nullptr;
    return cuGraphCreate(&graph, 0) == CUDA_SUCCESS &&
           cuGraphAddMemAllocNode(&made, graph, nullptr, 0, &params) == CUDA_SUCCESS &&
           cuGraphAddMemFreeNode(&freed, graph, &made, 1, params.dptr) == CUDA_SUCCESS &&
           cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS;
  }
  CUresult launch() const {
    const CUresult result = cuGraphLaunch(exec, nullptr);
    return result == CUDA_SUCCESS ? cuStreamSynchronize(nullptr) : result;
  }
  ~MemoryGraph() {
    if (exec != nullptr) (void)cuGraphExecDestroy(exec);
    if (graph != nullptr) (void)cuGraphDestroy(graph);
  }
};

}  // namespace

DRIVER_CHECK(an_array_is_charged_until_it_is_destroyed) {
  const WithContext with;
  CUarray arrays[5] = {};
  const CUDA_ARRAY_DESCRIPTOR shape = floats(4096, 4096);
  for (int i = 0; i < 4; ++i) EXPECT_OK(cuArrayCreate_v2(&arrays[i], &shape));
  EXPECT_SAME(charged(), std::size_t{256});
  EXPECT_CODE(cuArrayCreate_v2(&arrays[4], &shape), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_OK(cuArrayDestroy(arrays[0]));
  EXPECT_SAME(charged(), std::size_t{192});
  EXPECT_OK(cuArrayCreate_v2(&arrays[0], &shape));
  for (int i = 0; i < 4; ++i) EXPECT_OK(cuArrayDestroy(arrays[i]));
  EXPECT_SAME(charged(), std::size_t{0});
}

DRIVER_CHECK(a_mipmapped_array_is_charged_with_all_its_levels) {
  const WithContext with;
  const auto create =
      function<CUresult(CUmipmappedArray*, const CUDA_ARRAY3D_DESCRIPTOR*, unsigned)>(
          "cuMipmappedArrayCreate");
  const auto destroy = function<CUresult(CUmipmappedArray)>("cuMipmappedArrayDestroy");
  const CUDA_ARRAY3D_DESCRIPTOR shape = {4096, 4096, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  CUmipmappedArray array = nullptr;
  EXPECT_OK(create(&array, &shape, 3));  // 64 + 16 + 4 MiB
  EXPECT_SAME(charged(), std::size_t{84});
  EXPECT_OK(destroy(array));
  EXPECT_SAME(charged(), std::size_t{0});
}

DRIVER_CHECK(arrays_go_with_their_context) {
  for (int i = 0; i < 3; ++i) {
    const WithContext with;
    CUarray array = nullptr;
    const CUDA_ARRAY_DESCRIPTOR shape = floats(4096, 10240);
    EXPECT_OK(cuArrayCreate_v2(&array, &shape));
  }
  const WithContext with;
  EXPECT_SAME(charged(), std::size_t{0});
}

DRIVER_CHECK(memory_of_a_graph_is_charged_from_its_first_launch_to_the_trim) {
  const WithContext with;
  MemoryGraph graph;
  EXPECT_TRUE(graph.make(64 * kMiB));
  EXPECT_SAME(charged(), std::size_t{0});
  for (int i = 0; i < 3; ++i) EXPECT_OK(graph.launch());
  EXPECT_SAME(charged(), std::size_t{64});
  EXPECT_OK(cuDeviceGraphMemTrim(0));
  EXPECT_SAME(charged(), std::size_t{0});
}

DRIVER_CHECK(a_graph_beyond_the_limit_is_refused_and_others_go_on) {
  const WithContext with;
  MemoryGraph small, large;
  EXPECT_TRUE(small.make(64 * kMiB));
  EXPECT_TRUE(large.make(300 * kMiB));
  EXPECT_CODE(large.launch(), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_OK(small.launch());
  EXPECT_CODE(large.launch(), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_OK(small.launch());
  EXPECT_OK(cuDeviceGraphMemTrim(0));
  EXPECT_SAME(charged(), std::size_t{0});
}

DRIVER_CHECK(what_idle_graphs_hold_is_let_go_when_it_is_needed) {
  const WithContext with;
  MemoryGraph one, two;
  EXPECT_TRUE(one.make(200 * kMiB));
  EXPECT_TRUE(two.make(220 * kMiB));
  CUdeviceptr p = 0;
  for (int i = 0; i < 2; ++i) {
    EXPECT_OK(one.launch());
    EXPECT_OK(two.launch());
    EXPECT_OK(cuMemAlloc_v2(&p, 240 * kMiB));
    EXPECT_OK(cuMemFree_v2(p));
  }
  EXPECT_OK(cuDeviceGraphMemTrim(0));
  EXPECT_SAME(charged(), std::size_t{0});
}

DRIVER_CHECK(a_captured_allocation_is_a_graphs_memory) {
  const WithContext with;
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUdeviceptr p = 0;
  EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_OK(cuMemAllocAsync(&p, 96 * kMiB, stream));
  EXPECT_OK(cuMemsetD32Async(p, 7, 96 * kMiB / 4, stream));
  EXPECT_OK(cuMemFreeAsync(p, stream));
  EXPECT_OK(cuStreamEndCapture(stream, &graph));
  EXPECT_SAME(charged(), std::size_t{0});
  EXPECT_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  EXPECT_OK(cuGraphLaunch(exec, stream));
  EXPECT_OK(cuStreamSynchronize(stream));
  EXPECT_SAME(charged(), std::size_t{96});
  EXPECT_OK(cuGraphExecDestroy(exec));
  EXPECT_OK(cuGraphDestroy(graph));
  EXPECT_OK(cuDeviceGraphMemTrim(0));
  EXPECT_SAME(charged(), std::size_t{0});
  EXPECT_OK(cuStreamDestroy_v2(stream));
}

// Multicast memory that is created, bound and released must not exceed the limit. The charge lasts
// until the memory is unbound or the object is destroyed.
DRIVER_CHECK(memory_bound_to_a_multicast_object_is_charged_until_it_is_unbound) {
  const auto create =
      function<CUresult(CUmemGenericAllocationHandle*, const CUmulticastObjectProp*)>(
          "cuMulticastCreate");
  const auto add =
      function<CUresult(CUmemGenericAllocationHandle, CUdevice)>("cuMulticastAddDevice");
  const auto bind =
      function<CUresult(CUmemGenericAllocationHandle, std::size_t, CUmemGenericAllocationHandle,
                        std::size_t, std::size_t, unsigned long long)>("cuMulticastBindMem");
  const auto bind_address =
      function<CUresult(CUmemGenericAllocationHandle, std::size_t, CUdeviceptr, std::size_t,
                        unsigned long long)>("cuMulticastBindAddr");
  const auto unbind =
      function<CUresult(CUmemGenericAllocationHandle, CUdevice, std::size_t, std::size_t)>(
          "cuMulticastUnbind");
  const WithContext with;
  constexpr std::size_t kSize = 64 * kMiB;
  const CUmulticastObjectProp team = {1, 2 * kSize, 0, 0};
  const auto prop = device_memory();
  CUmemGenericAllocationHandle object = 0, one = 0, two = 0;
  CUdeviceptr range = 0;
  EXPECT_OK(create(&object, &team));
  EXPECT_OK(add(object, 0));
  EXPECT_SAME(charged(), std::size_t{0});
  EXPECT_OK(cuMemCreate(&one, kSize, &prop, 0));
  EXPECT_OK(cuMemCreate(&two, kSize, &prop, 0));
  EXPECT_OK(cuMemAddressReserve(&range, kSize, 0, 0, 0));
  EXPECT_OK(cuMemMap(range, kSize, 0, two, 0));
  EXPECT_OK(bind(object, 0, one, 0, kSize, 0));
  EXPECT_OK(bind_address(object, kSize, range, kSize, 0));
  EXPECT_CODE(bind(object, 0, one, 0, kSize, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuMemRelease(one));
  EXPECT_OK(cuMemRelease(two));
  EXPECT_OK(cuMemUnmap(range, kSize));
  EXPECT_SAME(charged(), std::size_t{128});
  EXPECT_OK(unbind(object, 0, 0, kSize));
  EXPECT_SAME(charged(), std::size_t{64});
  EXPECT_OK(cuMemRelease(object));
  EXPECT_SAME(charged(), std::size_t{0});
  EXPECT_OK(cuMemAddressFree(range, kSize));
}

// External memory is charged to its maker until the maker releases it; no process is credited for
// mappings.
DRIVER_CHECK(external_memory_is_charged_to_its_maker_however_often_it_is_imported) {
  const auto import =
      function<CUresult(CUexternalMemory*, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC*)>(
          "cuImportExternalMemory");
  const auto map =
      function<CUresult(CUdeviceptr*, CUexternalMemory, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC*)>(
          "cuExternalMemoryGetMappedBuffer");
  const auto map_array = function<CUresult(CUmipmappedArray*, CUexternalMemory,
                                           const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC*)>(
      "cuExternalMemoryGetMappedMipmappedArray");
  const auto destroy_array = function<CUresult(CUmipmappedArray)>("cuMipmappedArrayDestroy");
  const auto destroy = function<CUresult(CUexternalMemory)>("cuDestroyExternalMemory");
  const WithContext with;
  constexpr std::size_t kSize = 64 * kMiB;
  const auto prop = device_memory(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  CUmemGenericAllocationHandle memory = 0;
  EXPECT_OK(cuMemCreate(&memory, kSize, &prop, 0));
  CUexternalMemory externals[6] = {};
  CUdeviceptr buffers[6] = {};
  CUmipmappedArray array = nullptr;
  CUDA_EXTERNAL_MEMORY_BUFFER_DESC whole = {};
  whole.size = kSize;
  for (int i = 0; i < 6; ++i) {  // together 384 MiB, if imports were charged
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = {};
    desc.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
    desc.size = kSize;
    EXPECT_OK(cuMemExportToShareableHandle(&desc.handle.fd, memory,
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    EXPECT_OK(import(&externals[i], &desc));
    EXPECT_OK(map(&buffers[i], externals[i], &whole));
  }
  CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC shape = {};
  shape.arrayDesc = {4096, 1024, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  shape.numLevels = 1;
  EXPECT_OK(map_array(&array, externals[0], &shape));
  EXPECT_SAME(charged(), std::size_t{64});
  EXPECT_OK(cuMemsetD32_v2(buffers[0], 0x5eed0005U, kSize / 4));
  std::uint32_t seen = 0;
  EXPECT_OK(cuMemcpyDtoH_v2(&seen, buffers[5] + kSize - 4, 4));
  EXPECT_SAME(seen, 0x5eed0005U);
  EXPECT_OK(destroy_array(array));
  for (int i = 0; i < 6; ++i) {
    EXPECT_OK(destroy(externals[i]));
    EXPECT_OK(cuMemFree_v2(buffers[i]));
  }
  EXPECT_SAME(charged(), std::size_t{64});
  EXPECT_OK(cuMemRelease(memory));
  EXPECT_SAME(charged(), std::size_t{0});
}

// libgpurota makes the primary context if there is none, and releases that context with the last
// green context.
DRIVER_CHECK(what_is_allocated_in_a_green_context_lives_in_the_primary) {
  const auto whole = function<CUresult(CUdevice, CUdevResource*, int)>("cuDeviceGetDevResource");
  const auto describe =
      function<CUresult(CUdevResourceDesc*, CUdevResource*, unsigned)>("cuDevResourceGenerateDesc");
  const auto create =
      function<CUresult(CUgreenCtx*, CUdevResourceDesc, CUdevice, unsigned)>("cuGreenCtxCreate");
  const auto destroy = function<CUresult(CUgreenCtx)>("cuGreenCtxDestroy");
  const auto view_of = function<CUresult(CUcontext*, CUgreenCtx)>("cuCtxFromGreenCtx");
  CUdevResource resource = {};
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr, other = nullptr;
  CUcontext view = nullptr;
  CUdeviceptr p = 0;
  EXPECT_OK(whole(0, &resource, CU_DEV_RESOURCE_TYPE_SM));
  EXPECT_OK(describe(&description, &resource, 1));
  for (int i = 0; i < 2; ++i) {
    EXPECT_OK(create(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    EXPECT_OK(create(&other, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    EXPECT_OK(view_of(&view, green));
    EXPECT_OK(cuCtxSetCurrent(view));
    EXPECT_OK(cuMemAlloc_v2(&p, 160 * kMiB));
    EXPECT_SAME(charged(), std::size_t{160});
    EXPECT_CODE(cuMemAlloc_v2(&p, 160 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_OK(destroy(green));
    EXPECT_OK(view_of(&view, other));
    EXPECT_OK(cuCtxSetCurrent(view));
    EXPECT_SAME(charged(), std::size_t{160});
    EXPECT_OK(destroy(other));
  }
  EXPECT_OK(cuCtxSetCurrent(nullptr));
  const WithContext with;
  EXPECT_SAME(charged(), std::size_t{0});
}

// An allocation at the limit asks the daemon, and reads and trims the pools. None of that may end a
// capture of another thread of the program.
DRIVER_CHECK(a_query_while_capturing_does_not_invalidate_the_programs_capture) {
  const WithContext with;
  CUstream stream = nullptr, other = nullptr;
  CUgraph graph = nullptr;
  CUdeviceptr pooled = 0, full = 0, more = 0;
  EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(cuMemAllocAsync(&pooled, 32 * kMiB, other));
  EXPECT_OK(cuMemFreeAsync(pooled, other));
  EXPECT_OK(cuStreamSynchronize(other));
  EXPECT_OK(cuMemAlloc_v2(&full, 224 * kMiB));
  EXPECT_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_OK(cuMemAllocAsync(&pooled, 8 * kMiB, stream));
  CUresult result = CUDA_ERROR_UNKNOWN;
  std::thread([&] {
    (void)cuCtxSetCurrent(with.context());
    result = cuMemAllocAsync(&more, 64 * kMiB, other);
  }).join();
  EXPECT_CODE(result, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_CODE(cuMemAllocAsync(&more, 300 * kMiB, other), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_OK(cuMemFreeAsync(pooled, stream));
  EXPECT_OK(cuStreamEndCapture(stream, &graph));
  EXPECT_OK(cuGraphDestroy(graph));
  EXPECT_OK(cuMemFree_v2(full));
  EXPECT_OK(cuStreamDestroy_v2(stream));
  EXPECT_OK(cuStreamDestroy_v2(other));
}
