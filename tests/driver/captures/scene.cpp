#include "tests/driver/captures/scene.h"

#include <cstdlib>

#include <unistd.h>

namespace captures {
namespace {

template <class T, class Destroy>
void drop(T& slot, Destroy destroy) {
  if (slot != T{}) (void)destroy(slot);
  slot = {};
}

bool is_capturing(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  (void)cuStreamIsCapturing(stream, &status);
  return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

CUresult make_graphs(Scene& s) {
  CUgraph child = nullptr;
  CUDA_MEMSET_NODE_PARAMS memset = {};
  memset.dst = s.memory;
  memset.elementSize = 1;
  memset.width = 16;
  memset.height = 1;
  CUDA_MEM_ALLOC_NODE_PARAMS allocation = {};
  allocation.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  allocation.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  allocation.bytesize = kBytes;
  CUgraphNode inner = nullptr;
  const CUresult results[] = {
      cuGraphCreate(&s.graph, 0),
      cuGraphCreate(&child, 0),
      cuGraphCreate(&s.memory_graph, 0),
      cuGraphAddMemsetNode(&inner, child, nullptr, 0, &memset, s.context),
      cuGraphAddMemsetNode(&s.graph_nodes[0], s.graph, nullptr, 0, &memset, s.context),
      cuGraphAddChildGraphNode(&s.graph_nodes[1], s.graph, nullptr, 0, child),
      cuGraphInstantiateWithFlags(&s.graph_exec, s.graph, 0),
      cuGraphAddMemAllocNode(&s.memory_node, s.memory_graph, nullptr, 0, &allocation)};
  for (const CUresult result : results) {
    if (result != CUDA_SUCCESS) return result;
  }
  return cuGraphDestroy(child);
}

void drop_mapping(Scene& s) {
  if (s.mapped) (void)cuMemUnmap(s.reserved, kBlock);
  s.mapped = false;
  drop(s.handle, cuMemRelease);
  drop(s.second_handle, cuMemRelease);
  drop(s.reserved, [](CUdeviceptr at) { return cuMemAddressFree(at, kBlock); });
  if (s.descriptor >= 0) ::close(s.descriptor);
  s.descriptor = -1;
}

}  // namespace

std::vector<Call> all_calls() {
  std::vector<Call> calls;
  add_memory_calls(calls);
  add_mapping_calls(calls);
  add_stream_calls(calls);
  add_context_calls(calls);
  add_code_calls(calls);
  return calls;
}

bool Scene::set_up() {
  pageable = std::aligned_alloc(4096, kBytes);
  const CUresult results[] = {
      cuInit(0),
      cuDevicePrimaryCtxRetain(&context, 0),
      cuCtxSetCurrent(context),
      cuMemAlloc_v2(&memory, kBytes),
      cuMemHostAlloc(&pinned, kBytes, 0),
      cuModuleLoadData(&module, kKernel),
      cuModuleGetFunction(&kernel, module, kKernelName),
      cuDeviceGetDefaultMemPool(&default_pool, 0),
  };
  for (const CUresult result : results) {
    if (result != CUDA_SUCCESS) return false;
  }
  return pageable != nullptr && make_graphs(*this) == CUDA_SUCCESS;
}

void Scene::open(unsigned capturing_flags) {
  good = true;
  need(cuStreamCreate(&capturing, capturing_flags));
  need(cuStreamCreate(&joined, capturing_flags));
  need(cuStreamCreate(&unrelated, CU_STREAM_NON_BLOCKING));
  for (CUevent* each : {&fork, &join, &fresh, &done, &recorded}) need(cuEventCreate(each, 0));
  need(cuEventRecord(done, unrelated));
}

void Scene::clean_up(bool only_ended) {
  // A capture that the call began is ended first: nothing else could be cleaned up during the
  // capture.
  if (!only_ended && unrelated != nullptr && is_capturing(unrelated)) {
    (void)cuStreamEndCapture(unrelated, &ended);
  }
  drop(ended, cuGraphDestroy);
  for (; pushed > 0; --pushed) {
    CUcontext popped = nullptr;
    (void)cuCtxPopCurrent_v2(&popped);
  }
  if (!only_ended) (void)cuCtxSynchronize();
  graph_pointer = 0;
  drop(new_context, cuCtxDestroy_v2);
  drop(pointer, cuMemFree_v2);
  drop(async_pointer, [](CUdeviceptr at) { return cuMemFreeAsync(at, nullptr); });
  drop(host_memory, cuMemFreeHost);
  drop(registered, cuMemHostUnregister);
  drop(array, cuArrayDestroy);
  drop(mipmap, cuMipmappedArrayDestroy);
  drop_mapping(*this);
  drop(pool, cuMemPoolDestroy);
  drop(imported_pool, cuMemPoolDestroy);
  drop(stream, cuStreamDestroy_v2);
  drop(event, cuEventDestroy_v2);
  drop(loaded, cuModuleUnload);
  drop(library, cuLibraryUnload);
  drop(new_exec, cuGraphExecDestroy);
  drop(new_graph, cuGraphDestroy);
}

void Scene::close() {
  for (CUevent* each : {&fork, &join, &fresh, &done, &recorded}) drop(*each, cuEventDestroy_v2);
  for (CUstream* each : {&capturing, &joined, &unrelated}) drop(*each, cuStreamDestroy_v2);
}

}  // namespace captures
