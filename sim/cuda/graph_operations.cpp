#include "sim/cuda/copy.h"
#include "sim/cuda/graph_call.h"
#include "sim/cuda/launch.h"
#include "sim/cuda/perform.h"
#include "sim/cuda/pool.h"

namespace gpurota::sim {

CUresult kernel_operation(Driver& driver, const CUDA_KERNEL_NODE_PARAMS* params, Operation* out) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Function* function = params->func != nullptr ? driver.functions.find(params->func)
                                               : driver.functions.find(params->kern);
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const LaunchShape shape = {{params->gridDimX, params->gridDimY, params->gridDimZ},
                             {params->blockDimX, params->blockDimY, params->blockDimZ},
                             params->sharedMemBytes};
  KernelOp op;
  const CUresult result = make_kernel(shape, function, params->kernelParams, params->extra, &op);
  if (result == CUDA_SUCCESS) *out = std::move(op);
  return result;
}

CUresult copy_operation(Driver& driver, const CUDA_MEMCPY3D* params, Operation* out) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CopyOp op;
  CUresult result = shaped_copy(driver, *params, &op);
  if (result != CUDA_SUCCESS) return result;
  *out = std::move(op);
  result = validate(driver, *out, true);
  return result;
}

CUresult set_operation(Driver& driver, const CUDA_MEMSET_NODE_PARAMS* params, Operation* out) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const unsigned element = params->elementSize;
  if (element != 1 && element != 2 && element != 4) return CUDA_ERROR_INVALID_VALUE;
  if (params->width == 0 || params->height == 0) return CUDA_ERROR_INVALID_VALUE;
  *out = SetOp{*params};
  return validate(driver, *out, true);
}

CUresult host_operation(const CUDA_HOST_NODE_PARAMS* params, Operation* out) {
  if (params == nullptr || params->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = HostOp{params->fn, params->userData};
  return CUDA_SUCCESS;
}

namespace {

CUresult alloc_operation(Driver& driver, CUDA_MEM_ALLOC_NODE_PARAMS* params, Operation* out) {
  const CUmemLocation& location = params->poolProps.location;
  if (location.type != CU_MEM_LOCATION_TYPE_DEVICE || driver.machine_device(location.id) < 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const CUresult result = make_graph_memory(driver, location.id, params->bytesize, &params->dptr);
  if (result == CUDA_SUCCESS) *out = AllocOp{*params};
  return result;
}

CUresult event_exists(const Driver& driver, CUevent event) {
  return driver.events.find(event) == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // namespace

CUresult any_operation(Driver& driver, CUgraphNodeParams* params, Operation* out) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto& p = params->params;
  switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return kernel_operation(driver, &p.kernel, out);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return copy_operation(driver, &p.memcpy.copyParams, out);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS set = {p.memset.dst,         p.memset.pitch, p.memset.value,
                                           p.memset.elementSize, p.memset.width, p.memset.height};
      return set_operation(driver, &set, out);
    }
    case CU_GRAPH_NODE_TYPE_HOST:
      return host_operation(&p.host, out);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      *out = EmptyOp{};
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_GRAPH: {
      const auto child = driver.graphs.find(reinterpret_cast<Graph*>(p.graph.graph));
      if (child == driver.graphs.end()) return CUDA_ERROR_INVALID_VALUE;
      *out = ChildOp{clone_graph(*child->second)};
      return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      *out = EventRecordOp{p.eventRecord.event};
      return event_exists(driver, p.eventRecord.event);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      *out = EventWaitOp{p.eventWait.event};
      return event_exists(driver, p.eventWait.event);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return alloc_operation(driver, &p.alloc, out);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      *out = FreeOp{p.free.dptr};
      return driver.graph_memory.count(p.free.dptr) > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
      return unsupported("cuGraphAddNode of this type");
  }
}

}  // namespace gpurota::sim
