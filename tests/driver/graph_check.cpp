// Graphs and capture.
#include "tests/driver/api.h"

#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kWords = 4096;

std::uint32_t word(CUdeviceptr p) {
  std::uint32_t value = 0;
  return cuMemcpyDtoH_v2(&value, p, 4) == CUDA_SUCCESS ? value : 0xdeadbeef;
}

CUDA_KERNEL_NODE_PARAMS kernel_node(CUfunction function, void** arguments) {
  CUDA_KERNEL_NODE_PARAMS params = {};
  params.func = function;
  params.gridDimX = 4;
  params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = 64;
  params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = arguments;
  return params;
}

}  // namespace

DRIVER_CHECK(a_graph_of_set_kernel_and_copy_runs_in_its_order_each_time) {
  WithContext with;
  CUdeviceptr p = 0, q = 0;
  EXPECT_OK(cuMemAlloc_v2(&p, kWords * 4));
  EXPECT_OK(cuMemAlloc_v2(&q, kWords * 4));
  CUgraph graph = nullptr;
  CUgraphNode set = nullptr, add = nullptr, copy = nullptr, end = nullptr;
  EXPECT_OK(cuGraphCreate(&graph, 0));
  const CUDA_MEMSET_NODE_PARAMS fill = {p, 0, 40, 4, kWords, 1};
  EXPECT_OK(cuGraphAddMemsetNode(&set, graph, nullptr, 0, &fill, with.context()));
  std::uint32_t two = 2;
  std::uint64_t count = kWords;
  void* arguments[] = {&p, &two, &count};
  const auto kernel = kernel_node(with.kernel("add_u32"), arguments);
  EXPECT_OK(cuGraphAddKernelNode_v2(&add, graph, &set, 1, &kernel));
  two = 1000;  // the node has its own copy of the arguments
  CUDA_MEMCPY3D move = {};
  move.srcMemoryType = move.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  move.srcDevice = p;
  move.dstDevice = q;
  move.WidthInBytes = kWords * 4;
  move.Height = move.Depth = 1;
  EXPECT_OK(cuGraphAddMemcpyNode(&copy, graph, &add, 1, &move, with.context()));
  EXPECT_OK(cuGraphAddEmptyNode(&end, graph, &copy, 1));
  std::size_t nodes = 0;
  EXPECT_OK(cuGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_SAME(nodes, 4U);
  CUgraphExec exec = nullptr;
  EXPECT_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  for (int round = 0; round < 3; ++round) {
    EXPECT_OK(cuMemsetD8_v2(q, 0, kWords * 4));
    EXPECT_OK(cuGraphLaunch(exec, nullptr));
    EXPECT_OK(cuStreamSynchronize(nullptr));
    EXPECT_SAME(word(q + kWords * 4 - 4), 42U);
  }
  std::uint32_t five = 5;
  void* changed[] = {&p, &five, &count};
  const auto other = kernel_node(with.kernel("add_u32"), changed);
  EXPECT_OK(cuGraphExecKernelNodeSetParams_v2(exec, add, &other));
  EXPECT_OK(cuGraphLaunch(exec, nullptr));
  EXPECT_OK(cuStreamSynchronize(nullptr));
  EXPECT_SAME(word(q), 45U);
  EXPECT_OK(cuGraphExecDestroy(exec));
  EXPECT_OK(cuGraphDestroy(graph));
  EXPECT_OK(cuMemFree_v2(p));
  EXPECT_OK(cuMemFree_v2(q));
}

DRIVER_CHECK(a_captured_stream_does_nothing_until_the_graph_is_launched) {
  WithContext with;
  CUstream stream = nullptr;
  CUdeviceptr p = 0;
  EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(cuMemAlloc_v2(&p, kWords * 4));
  EXPECT_OK(cuMemsetD32_v2(p, 1, kWords));
  const CUfunction add = with.kernel("add_u32");
  std::uint32_t ten = 10;
  std::uint64_t count = kWords;
  void* arguments[] = {&p, &ten, &count};
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  EXPECT_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_OK(launch(add, stream, arguments));
  EXPECT_OK(launch(add, stream, arguments));
  EXPECT_OK(cuStreamIsCapturing(stream, &status));
  EXPECT_SAME(static_cast<int>(status), static_cast<int>(CU_STREAM_CAPTURE_STATUS_ACTIVE));
  EXPECT_OK(cuStreamEndCapture(stream, &graph));
  EXPECT_SAME(word(p), 1U);
  EXPECT_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  EXPECT_OK(cuGraphLaunch(exec, stream));
  EXPECT_OK(cuGraphLaunch(exec, stream));
  EXPECT_OK(cuStreamSynchronize(stream));
  EXPECT_SAME(word(p), 41U);
  EXPECT_OK(cuGraphExecDestroy(exec));
  EXPECT_OK(cuGraphDestroy(graph));
  EXPECT_OK(cuMemFree_v2(p));
  EXPECT_OK(cuStreamDestroy_v2(stream));
}

DRIVER_CHECK(a_capture_forks_and_joins_by_events) {
  WithContext with;
  CUstream first = nullptr, second = nullptr;
  CUevent fork = nullptr, join = nullptr;
  CUdeviceptr p = 0;
  EXPECT_OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
  EXPECT_OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
  EXPECT_OK(cuMemAlloc_v2(&p, kWords * 4));
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  EXPECT_OK(cuStreamBeginCapture_v2(first, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  EXPECT_OK(cuMemsetD32Async(p, 1, kWords, first));
  EXPECT_OK(cuEventRecord(fork, first));
  EXPECT_OK(cuStreamWaitEvent(second, fork, 0));
  EXPECT_OK(cuMemsetD32Async(p, 2, kWords / 2, second));
  EXPECT_OK(cuEventRecord(join, second));
  EXPECT_OK(cuStreamWaitEvent(first, join, 0));
  EXPECT_OK(cuMemsetD32Async(p, 3, kWords / 4, first));
  EXPECT_OK(cuStreamEndCapture(first, &graph));
  EXPECT_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  EXPECT_OK(cuGraphLaunch(exec, first));
  EXPECT_OK(cuStreamSynchronize(first));
  EXPECT_SAME(word(p), 3U);
  EXPECT_SAME(word(p + kWords), 2U);
  EXPECT_SAME(word(p + kWords * 4 - 4), 1U);
  EXPECT_OK(cuGraphExecDestroy(exec));
  EXPECT_OK(cuGraphDestroy(graph));
  EXPECT_OK(cuMemFree_v2(p));
  EXPECT_OK(cuStreamDestroy_v2(first));
  EXPECT_OK(cuStreamDestroy_v2(second));
}

DRIVER_CHECK(a_fork_that_never_joins_spoils_the_capture) {
  const WithContext with;
  CUstream first = nullptr, second = nullptr;
  CUevent fork = nullptr;
  CUdeviceptr p = 0;
  CUgraph graph = nullptr;
  EXPECT_OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
  EXPECT_OK(cuMemAlloc_v2(&p, kWords * 4));
  EXPECT_OK(cuStreamBeginCapture_v2(first, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_OK(cuEventRecord(fork, first));
  EXPECT_OK(cuStreamWaitEvent(second, fork, 0));
  EXPECT_OK(cuMemsetD32Async(p, 2, kWords, second));
  EXPECT_CODE(cuStreamEndCapture(first, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_TRUE(graph == nullptr);
  EXPECT_OK(cuMemFree_v2(p));
  EXPECT_OK(cuStreamDestroy_v2(first));
  EXPECT_OK(cuStreamDestroy_v2(second));
}

DRIVER_CHECK(an_allocation_during_a_global_capture_is_refused_and_ends_it) {
  const WithContext with;
  CUstream stream = nullptr;
  CUdeviceptr p = 0;
  CUgraph graph = nullptr;
  EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_CODE(cuMemAlloc_v2(&p, 4096), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_CODE(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_OK(cuMemAlloc_v2(&p, 4096));
  EXPECT_OK(cuMemsetD32Async(p, 0, 16, stream));
  EXPECT_OK(cuStreamEndCapture(stream, &graph));
  EXPECT_OK(cuGraphDestroy(graph));
  EXPECT_OK(cuMemFree_v2(p));
  EXPECT_OK(cuStreamDestroy_v2(stream));
}

DRIVER_CHECK(another_thread_in_relaxed_mode_may_allocate_during_a_global_capture) {
  const WithContext with;
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUresult result = CUDA_ERROR_UNKNOWN;
  EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  std::thread([&] {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUdeviceptr p = 0;
    (void)cuThreadExchangeStreamCaptureMode(&mode);
    (void)cuCtxSetCurrent(with.context());
    result = cuMemAlloc_v2(&p, 4096);
    if (result == CUDA_SUCCESS) result = cuMemFree_v2(p);
  }).join();
  EXPECT_OK(result);
  EXPECT_OK(cuStreamEndCapture(stream, &graph));
  EXPECT_OK(cuGraphDestroy(graph));
  EXPECT_OK(cuStreamDestroy_v2(stream));
}

DRIVER_CHECK(synchronising_during_a_capture_is_refused_and_ends_it) {
  const WithContext with;
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_CODE(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_CODE(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_CODE(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_CODE(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_OK(cuStreamDestroy_v2(stream));
}

DRIVER_CHECK(the_legacy_stream_cannot_be_used_while_a_blocking_stream_captures) {
  const WithContext with;
  CUstream stream = nullptr;
  CUdeviceptr p = 0;
  CUgraph graph = nullptr;
  EXPECT_OK(cuMemAlloc_v2(&p, 4096));
  EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  EXPECT_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_CODE(cuMemsetD32Async(p, 0, 16, nullptr), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_CODE(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_CODE(cuStreamBeginCapture_v2(nullptr, CU_STREAM_CAPTURE_MODE_RELAXED),
              CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_OK(cuMemFree_v2(p));
  EXPECT_OK(cuStreamDestroy_v2(stream));
}

DRIVER_CHECK(a_graph_allocates_and_frees_its_own_memory) {
  WithContext with;
  CUgraph graph = nullptr;
  CUgraphNode alloc = nullptr, set = nullptr, copy = nullptr, free = nullptr;
  CUdeviceptr out = 0;
  EXPECT_OK(cuMemAlloc_v2(&out, kWords * 4));
  EXPECT_OK(cuGraphCreate(&graph, 0));
  CUDA_MEM_ALLOC_NODE_PARAMS params = {};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  params.bytesize = kWords * 4;
  EXPECT_OK(cuGraphAddMemAllocNode(&alloc, graph, nullptr, 0, &params));
  EXPECT_TRUE(params.dptr != 0);
  CUDA_KERNEL_NODE_PARAMS kernel = {};
  std::uint32_t value = 77;
  std::uint64_t count = kWords;
  void* arguments[] = {&params.dptr, &value, &count};
  kernel = kernel_node(with.kernel("fill_u32"), arguments);
  EXPECT_OK(cuGraphAddKernelNode_v2(&set, graph, &alloc, 1, &kernel));
  std::uint32_t none = 0;
  void* fill_out[] = {&out, &none, &count};
  kernel = kernel_node(with.kernel("fill_u32"), fill_out);
  EXPECT_OK(cuGraphAddKernelNode_v2(&copy, graph, &set, 1, &kernel));
  EXPECT_OK(cuGraphAddMemFreeNode(&free, graph, &copy, 1, params.dptr));
  CUgraphExec exec = nullptr;
  EXPECT_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  for (int round = 0; round < 2; ++round) {
    EXPECT_OK(cuGraphLaunch(exec, nullptr));
    EXPECT_OK(cuStreamSynchronize(nullptr));
  }
  cuuint64_t used = 0, reserved = 0;
  EXPECT_OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
  EXPECT_OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved));
  EXPECT_TRUE(used <= reserved);
  EXPECT_OK(cuGraphExecDestroy(exec));
  EXPECT_OK(cuGraphDestroy(graph));
  EXPECT_OK(cuDeviceGraphMemTrim(0));
  EXPECT_OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved));
  EXPECT_SAME(reserved, 0U);
  EXPECT_OK(cuMemFree_v2(out));
}

// The graph is launched again before the first run has ended: the second run uses the memory that
// the first run frees.
DRIVER_CHECK(a_graph_that_allocates_is_launched_again_before_it_has_run) {
  WithContext with;
  CUfunction spin_us = with.kernel("spin_us");
  constexpr std::size_t kSize = std::size_t{8} << 20;
  CUDA_MEM_ALLOC_NODE_PARAMS params = {};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  params.bytesize = kSize;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUgraphNode made = nullptr, set = nullptr, freed = nullptr;
  CUstream stream = nullptr;
  EXPECT_OK(cuGraphCreate(&graph, 0));
  EXPECT_OK(cuGraphAddMemAllocNode(&made, graph, nullptr, 0, &params));
  CUDA_MEMSET_NODE_PARAMS fill = {};
  fill.dst = params.dptr;
  fill.value = 7;
  fill.elementSize = 4;
  fill.width = kSize / 4;
  fill.height = 1;
  EXPECT_OK(cuGraphAddMemsetNode(&set, graph, &made, 1, &fill, with.context()));
  EXPECT_OK(cuGraphAddMemFreeNode(&freed, graph, &set, 1, params.dptr));
  EXPECT_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(spin(spin_us, stream, 20000));
  for (int i = 0; i < 5; ++i) EXPECT_OK(cuGraphLaunch(exec, stream));
  EXPECT_OK(cuStreamSynchronize(stream));
  EXPECT_OK(cuGraphExecDestroy(exec));  // a real driver keeps the graph's memory
  EXPECT_OK(cuGraphDestroy(graph));
  EXPECT_OK(cuStreamDestroy_v2(stream));
  EXPECT_OK(cuDeviceGraphMemTrim(0));
  cuuint64_t reserved = 0;
  EXPECT_OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved));
  EXPECT_SAME(reserved, cuuint64_t{0});
}

DRIVER_CHECK(an_update_takes_the_same_shape_only) {
  WithContext with;
  CUdeviceptr p = 0;
  EXPECT_OK(cuMemAlloc_v2(&p, kWords * 4));
  CUgraph one = nullptr, two = nullptr, three = nullptr;
  CUgraphNode node = nullptr, more = nullptr;
  CUDA_MEMSET_NODE_PARAMS fill = {p, 0, 1, 4, kWords, 1};
  EXPECT_OK(cuGraphCreate(&one, 0));
  EXPECT_OK(cuGraphAddMemsetNode(&node, one, nullptr, 0, &fill, with.context()));
  fill.value = 9;
  EXPECT_OK(cuGraphCreate(&two, 0));
  EXPECT_OK(cuGraphAddMemsetNode(&node, two, nullptr, 0, &fill, with.context()));
  EXPECT_OK(cuGraphClone(&three, two));
  EXPECT_OK(cuGraphAddEmptyNode(&more, three, nullptr, 0));
  CUgraphExec exec = nullptr;
  CUgraphExecUpdateResultInfo info = {};
  EXPECT_OK(cuGraphInstantiateWithFlags(&exec, one, 0));
  EXPECT_OK(cuGraphExecUpdate_v2(exec, two, &info));
  EXPECT_OK(cuGraphLaunch(exec, nullptr));
  EXPECT_OK(cuStreamSynchronize(nullptr));
  EXPECT_SAME(word(p), 9U);
  EXPECT_CODE(cuGraphExecUpdate_v2(exec, three, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_SAME(static_cast<int>(info.result),
              static_cast<int>(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED));
  EXPECT_OK(cuGraphExecDestroy(exec));
  EXPECT_OK(cuGraphDestroy(one));
  EXPECT_OK(cuGraphDestroy(two));
  EXPECT_OK(cuGraphDestroy(three));
  EXPECT_OK(cuMemFree_v2(p));
}

DRIVER_CHECK(a_child_graph_and_a_host_node_run_in_order) {
  WithContext with;
  CUdeviceptr p = 0;
  EXPECT_OK(cuMemAlloc_v2(&p, kWords * 4));
  CUgraph child = nullptr, graph = nullptr;
  CUgraphNode node = nullptr, inner = nullptr, host = nullptr;
  const CUDA_MEMSET_NODE_PARAMS one = {p, 0, 1, 4, kWords, 1};
  const CUDA_MEMSET_NODE_PARAMS two = {p, 0, 2, 4, kWords / 2, 1};
  EXPECT_OK(cuGraphCreate(&child, 0));
  EXPECT_OK(cuGraphAddMemsetNode(&inner, child, nullptr, 0, &two, with.context()));
  EXPECT_OK(cuGraphCreate(&graph, 0));
  EXPECT_OK(cuGraphAddMemsetNode(&node, graph, nullptr, 0, &one, with.context()));
  CUgraphNode nested = nullptr;
  EXPECT_OK(cuGraphAddChildGraphNode(&nested, graph, &node, 1, child));
  int calls = 0;
  const CUDA_HOST_NODE_PARAMS count = {[](void* data) { ++*static_cast<int*>(data); }, &calls};
  EXPECT_OK(cuGraphAddHostNode(&host, graph, &nested, 1, &count));
  CUgraphExec exec = nullptr;
  EXPECT_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  EXPECT_OK(cuGraphLaunch(exec, nullptr));
  EXPECT_OK(cuStreamSynchronize(nullptr));
  EXPECT_SAME(calls, 1);
  EXPECT_SAME(word(p), 2U);
  EXPECT_SAME(word(p + kWords * 4 - 4), 1U);
  EXPECT_OK(cuGraphExecDestroy(exec));
  EXPECT_OK(cuGraphDestroy(graph));
  EXPECT_OK(cuGraphDestroy(child));
  EXPECT_OK(cuMemFree_v2(p));
}
