// Graph nodes: adding, reading and changing them.
#include "sim/cuda/graph_call.h"
#include "sim/cuda/kernel.h"
#include "sim/cuda/pool.h"

namespace gpurota::sim {
namespace {

// Reads the parameters of a kernel node. The arguments that `out` points at live in the node.
void read_kernel(KernelOp& op, CUDA_KERNEL_NODE_PARAMS* out) {
  op.argument_pointers.clear();
  std::size_t offset = 0;
  for (const std::size_t bytes : op.function->spec->argument_bytes) {
    offset = (offset + bytes - 1) / bytes * bytes;
    op.argument_pointers.push_back(op.arguments.data() + offset);
    offset += bytes;
  }
  *out = {};
  out->func = reinterpret_cast<CUfunction>(op.function);
  out->gridDimX = op.grid[0];
  out->gridDimY = op.grid[1];
  out->gridDimZ = op.grid[2];
  out->blockDimX = op.block[0];
  out->blockDimY = op.block[1];
  out->blockDimZ = op.block[2];
  out->sharedMemBytes = op.shared_bytes;
  out->kernelParams = op.argument_pointers.data();
}

CUDA_KERNEL_NODE_PARAMS widen(const CUDA_KERNEL_NODE_PARAMS_v1& v1) {
  return {.func = v1.func,
          .gridDimX = v1.gridDimX,
          .gridDimY = v1.gridDimY,
          .gridDimZ = v1.gridDimZ,
          .blockDimX = v1.blockDimX,
          .blockDimY = v1.blockDimY,
          .blockDimZ = v1.blockDimZ,
          .sharedMemBytes = v1.sharedMemBytes,
          .kernelParams = v1.kernelParams,
          .extra = v1.extra,
          .kern = nullptr,
          .ctx = nullptr};
}

// Adds a node whose operation `make` builds under the lock.
template <class Make>
CUresult add(CUgraph graph, CUgraphNode* out, const CUgraphNode* after, std::size_t count,
             const Make& make) {
  GraphCall call(graph);
  if (call.failed()) return call.error();
  Operation operation;
  const CUresult result = make(call.driver(), &operation);
  return result == CUDA_SUCCESS ? call.add(out, after, count, std::move(operation)) : result;
}

// Replaces a node's operation by one of the same kind.
template <class T, class Make>
CUresult change(CUgraphNode handle, const Make& make) {
  const NodeCall call(handle);
  if (call.failed()) return call.error();
  Operation operation;
  if (call.as<T>() == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = make(call.driver(), &operation);
  if (result == CUDA_SUCCESS) call.node().operation = std::move(operation);
  return result;
}

// Reads something out of a node of the right kind.
template <class T, class Out, class Read>
CUresult read(CUgraphNode handle, Out* out, const Read& get) {
  const NodeCall call(handle);
  if (call.failed()) return call.error();
  if (out == nullptr || call.as<T>() == nullptr) return CUDA_ERROR_INVALID_VALUE;
  get(*call.as<T>());
  return CUDA_SUCCESS;
}

CUresult event_operation(Driver& driver, CUevent event, Operation made, Operation* out) {
  if (driver.events.find(event) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = std::move(made);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace gpurota::sim

using namespace gpurota::sim;  // NOLINT(google-build-using-namespace): a file of thin exports

GPUROTA_SIM_API cuGraphAddEmptyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                    std::size_t count) {
  return add(graph, out, after, count, [](Driver&, Operation*) { return CUDA_SUCCESS; });
}

GPUROTA_SIM_API cuGraphAddKernelNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                        std::size_t count, const CUDA_KERNEL_NODE_PARAMS* params) {
  return add(graph, out, after, count,
             [&](Driver& d, Operation* op) { return kernel_operation(d, params, op); });
}

GPUROTA_SIM_API cuGraphAddKernelNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                     std::size_t count, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS wide = widen(*params);
  return cuGraphAddKernelNode_v2(out, graph, after, count, &wide);
}

GPUROTA_SIM_API cuGraphAddMemcpyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                     std::size_t count, const CUDA_MEMCPY3D* params, CUcontext) {
  return add(graph, out, after, count,
             [&](Driver& d, Operation* op) { return copy_operation(d, params, op); });
}

GPUROTA_SIM_API cuGraphAddMemsetNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                     std::size_t count, const CUDA_MEMSET_NODE_PARAMS* params,
                                     CUcontext) {
  return add(graph, out, after, count,
             [&](Driver& d, Operation* op) { return set_operation(d, params, op); });
}

GPUROTA_SIM_API cuGraphAddHostNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                   std::size_t count, const CUDA_HOST_NODE_PARAMS* params) {
  return add(graph, out, after, count,
             [&](Driver&, Operation* op) { return host_operation(params, op); });
}

GPUROTA_SIM_API cuGraphAddChildGraphNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                         std::size_t count, CUgraph child) {
  return add(graph, out, after, count, [&](Driver& d, Operation* op) {
    const auto found = d.graphs.find(reinterpret_cast<Graph*>(child));
    if (found == d.graphs.end() || child == graph) return CUDA_ERROR_INVALID_VALUE;
    *op = ChildOp{clone_graph(*found->second)};
    return CUDA_SUCCESS;
  });
}

GPUROTA_SIM_API cuGraphAddEventRecordNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                          std::size_t count, CUevent event) {
  return add(graph, out, after, count, [&](Driver& d, Operation* op) {
    return event_operation(d, event, EventRecordOp{event}, op);
  });
}

GPUROTA_SIM_API cuGraphAddEventWaitNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                        std::size_t count, CUevent event) {
  return add(graph, out, after, count, [&](Driver& d, Operation* op) {
    return event_operation(d, event, EventWaitOp{event}, op);
  });
}

GPUROTA_SIM_API cuGraphAddNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                  const CUgraphEdgeData* edges, std::size_t count,
                                  CUgraphNodeParams* params) {
  if (edges != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return add(graph, out, after, count,
             [&](Driver& d, Operation* op) { return any_operation(d, params, op); });
}

GPUROTA_SIM_API cuGraphAddNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                               std::size_t count, CUgraphNodeParams* params) {
  return cuGraphAddNode_v2(out, graph, after, nullptr, count, params);
}

GPUROTA_SIM_API cuGraphAddMemAllocNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                       std::size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams any = {};
  any.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  any.params.alloc = *params;
  const CUresult result = cuGraphAddNode_v2(out, graph, after, nullptr, count, &any);
  params->dptr = any.params.alloc.dptr;
  return result;
}

GPUROTA_SIM_API cuGraphAddMemFreeNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                      std::size_t count, CUdeviceptr address) {
  CUgraphNodeParams any = {};
  any.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
  any.params.free.dptr = address;
  return cuGraphAddNode_v2(out, graph, after, nullptr, count, &any);
}

GPUROTA_SIM_API cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* out) {
  return read<KernelOp>(node, out, [&](KernelOp& op) { read_kernel(op, out); });
}

GPUROTA_SIM_API cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* out) {
  return read<KernelOp>(node, out, [&](KernelOp& op) {
    CUDA_KERNEL_NODE_PARAMS wide = {};
    read_kernel(op, &wide);
    *out = {.func = wide.func,
            .gridDimX = wide.gridDimX,
            .gridDimY = wide.gridDimY,
            .gridDimZ = wide.gridDimZ,
            .blockDimX = wide.blockDimX,
            .blockDimY = wide.blockDimY,
            .blockDimZ = wide.blockDimZ,
            .sharedMemBytes = wide.sharedMemBytes,
            .kernelParams = wide.kernelParams,
            .extra = nullptr};
  });
}

GPUROTA_SIM_API cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* out) {
  return read<CopyOp>(node, out, [&](CopyOp& op) { *out = op.asked; });
}

GPUROTA_SIM_API cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* out) {
  return read<SetOp>(node, out, [&](SetOp& op) { *out = op.params; });
}

GPUROTA_SIM_API cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* out) {
  return read<HostOp>(node, out, [&](HostOp& op) { *out = {op.function, op.data}; });
}

GPUROTA_SIM_API cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* out) {
  return read<EventRecordOp>(node, out, [&](EventRecordOp& op) { *out = op.event; });
}

GPUROTA_SIM_API cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* out) {
  return read<EventWaitOp>(node, out, [&](EventWaitOp& op) { *out = op.event; });
}

GPUROTA_SIM_API cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* out) {
  return read<AllocOp>(node, out, [&](AllocOp& op) { *out = op.params; });
}

GPUROTA_SIM_API cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* out) {
  return read<FreeOp>(node, out, [&](FreeOp& op) { *out = op.address; });
}

GPUROTA_SIM_API cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph* out) {
  const NodeCall call(handle);
  if (call.failed()) return call.error();
  const auto* child = call.as<ChildOp>();
  if (out == nullptr || child == nullptr) return CUDA_ERROR_INVALID_VALUE;
  call.driver().graphs[child->graph.get()] = child->graph;
  *out = reinterpret_cast<CUgraph>(child->graph.get());
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuGraphKernelNodeSetParams_v2(CUgraphNode node,
                                              const CUDA_KERNEL_NODE_PARAMS* params) {
  return change<KernelOp>(
      node, [&](Driver& d, Operation* op) { return kernel_operation(d, params, op); });
}

GPUROTA_SIM_API cuGraphKernelNodeSetParams(CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS wide = widen(*params);
  return cuGraphKernelNodeSetParams_v2(node, &wide);
}

GPUROTA_SIM_API cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* params) {
  return change<CopyOp>(node,
                        [&](Driver& d, Operation* op) { return copy_operation(d, params, op); });
}

GPUROTA_SIM_API cuGraphMemsetNodeSetParams(CUgraphNode node,
                                           const CUDA_MEMSET_NODE_PARAMS* params) {
  return change<SetOp>(node,
                       [&](Driver& d, Operation* op) { return set_operation(d, params, op); });
}

GPUROTA_SIM_API cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* params) {
  return change<HostOp>(node, [&](Driver&, Operation* op) { return host_operation(params, op); });
}

GPUROTA_SIM_API cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  return change<EventRecordOp>(node, [&](Driver& d, Operation* op) {
    return event_operation(d, event, EventRecordOp{event}, op);
  });
}

GPUROTA_SIM_API cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  return change<EventWaitOp>(node, [&](Driver& d, Operation* op) {
    return event_operation(d, event, EventWaitOp{event}, op);
  });
}
