// Instantiated graphs: creating, updating and launching them.
#include "sim/cuda/graph_call.h"
#include "sim/cuda/pool.h"
#include "sim/cuda/stream.h"

namespace gpurota::sim {
namespace {

CUresult instantiate(CUgraphExec* out, CUgraph handle, unsigned long long flags) {
  const GraphCall call(handle, "cuGraphInstantiateWithFlags");
  if (call.failed()) return call.error();
  constexpr unsigned long long kFlags = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                        CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                                        CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) {
    return unsupported("cuGraphInstantiate for device launch");
  }
  if (out == nullptr || (flags & ~kFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  const std::vector<Context*>& stack = context_stack();
  Context* context = stack.empty() ? nullptr : call.driver().contexts.find(stack.back());
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  auto exec = std::make_unique<GraphExec>(call.graph().objects);
  exec->context = context;
  exec->flags = flags;
  if (!lay_out(call.graph(), exec->nodes)) return CUDA_ERROR_INVALID_VALUE;
  for (const ExecNode& node : exec->nodes) {
    const auto* alloc = std::get_if<AllocOp>(&node.operation);
    if (alloc != nullptr) exec->memory.push_back(alloc->params.dptr);
  }
  *out = reinterpret_cast<CUgraphExec>(call.driver().execs.add(std::move(exec)));
  return CUDA_SUCCESS;
}

class ExecCall : public Call {
 public:
  explicit ExecCall(CUgraphExec handle, const char* function = __builtin_FUNCTION())
      : Call(function) {
    if (failed()) return;
    exec_ = driver_.execs.find(handle);
    if (exec_ == nullptr) error_ = CUDA_ERROR_INVALID_VALUE;
  }
  GraphExec& exec() const { return *exec_; }
  // The node made from `origin`; null if none.
  ExecNode* find(CUgraphNode origin) const {
    for (ExecNode& node : exec_->nodes) {
      if (node.origin == reinterpret_cast<const GraphNode*>(origin)) return &node;
    }
    return nullptr;
  }

 private:
  GraphExec* exec_ = nullptr;
};

// Replaces the operation of a node by one of the same kind.
template <class Make>
CUresult change(CUgraphExec exec, CUgraphNode origin, const Make& make) {
  const ExecCall call(exec);
  if (call.failed()) return call.error();
  ExecNode* node = call.find(origin);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Operation operation;
  const CUresult result = make(call.driver(), &operation);
  if (result != CUDA_SUCCESS) return result;
  if (node_type(operation) != node_type(node->operation)) return CUDA_ERROR_INVALID_VALUE;
  node->operation = std::move(operation);
  return CUDA_SUCCESS;
}

CUgraphExecUpdateResult compare(const GraphExec& exec, const std::vector<ExecNode>& nodes,
                                const GraphNode** wrong) {
  *wrong = nullptr;
  if (nodes.size() != exec.nodes.size()) return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    *wrong = nodes[i].origin;
    if (nodes[i].after != exec.nodes[i].after) return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    const CUgraphNodeType type = node_type(nodes[i].operation);
    if (type != node_type(exec.nodes[i].operation)) {
      return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    }
    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
      return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
    }
  }
  *wrong = nullptr;
  return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

CUresult update(CUgraphExec handle, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  const ExecCall call(handle);
  if (call.failed()) return call.error();
  const auto found = call.driver().graphs.find(reinterpret_cast<Graph*>(graph));
  if (found == call.driver().graphs.end() || info == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<ExecNode> nodes;
  if (!lay_out(*found->second, nodes)) return CUDA_ERROR_INVALID_VALUE;
  const GraphNode* wrong = nullptr;
  info->result = compare(call.exec(), nodes, &wrong);
  info->errorNode = reinterpret_cast<CUgraphNode>(const_cast<GraphNode*>(wrong));
  info->errorFromNode = nullptr;
  if (info->result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    call.exec().nodes[i].operation = std::move(nodes[i].operation);
  }
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace gpurota::sim

using namespace gpurota::sim;  // NOLINT(google-build-using-namespace): a file of thin exports

GPUROTA_SIM_API cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph,
                                            unsigned long long flags) {
  return instantiate(out, graph, flags);
}

GPUROTA_SIM_API cuGraphInstantiate_v2(CUgraphExec* out, CUgraph graph, CUgraphNode* wrong,
                                      char* log, std::size_t log_bytes) {
  if (wrong != nullptr) *wrong = nullptr;
  if (log != nullptr && log_bytes > 0) *log = '\0';
  return instantiate(out, graph, 0);
}

GPUROTA_SIM_API cuGraphInstantiate(CUgraphExec* out, CUgraph graph, CUgraphNode* wrong, char* log,
                                   std::size_t log_bytes) {
  return cuGraphInstantiate_v2(out, graph, wrong, log, log_bytes);
}

GPUROTA_SIM_STREAM_API(cuGraphInstantiateWithParams, _ptsz,
                       (CUgraphExec * out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params),
                       (out, graph, params)) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  params->hErrNode_out = nullptr;
  const CUresult result = instantiate(out, graph, params->flags);
  params->result_out =
      result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
  return result;
}

GPUROTA_SIM_API cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t* flags) {
  const ExecCall call(handle);
  if (call.failed()) return call.error();
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = call.exec().flags;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuGraphExecDestroy(CUgraphExec handle) {
  const ExecCall call(handle);
  if (call.failed()) return call.error();
  (void)call.driver().execs.take(&call.exec());
  return CUDA_SUCCESS;
}

GPUROTA_SIM_STREAM_API(cuGraphLaunch, _ptsz, (CUgraphExec handle, CUstream stream),
                       (handle, stream)) {
  StreamCall call(stream);
  if (call.failed()) return call.error();
  GraphExec* exec = call.driver().execs.find(handle);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return launch_graph(call.driver(), *exec, call.stream());
}

// Backs the memory of the allocation nodes; everything else is ready when the graph is
// instantiated.
GPUROTA_SIM_STREAM_API(cuGraphUpload, _ptsz, (CUgraphExec handle, CUstream stream),
                       (handle, stream)) {
  const StreamCall call(stream);
  if (call.failed()) return call.error();
  const GraphExec* exec = call.driver().execs.find(handle);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (const CUdeviceptr address : exec->memory) {
    const CUresult backed = back_graph_memory(call.driver(), address);
    if (backed != CUDA_SUCCESS) return backed;
  }
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph,
                                     CUgraphExecUpdateResultInfo* info) {
  return update(exec, graph, info);
}

GPUROTA_SIM_API cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* wrong,
                                  CUgraphExecUpdateResult* result) {
  CUgraphExecUpdateResultInfo info = {};
  const CUresult outcome = update(exec, graph, &info);
  if (wrong != nullptr) *wrong = info.errorNode;
  if (result != nullptr) *result = info.result;
  return outcome;
}

GPUROTA_SIM_API cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                                  const CUDA_KERNEL_NODE_PARAMS* params) {
  return change(exec, node,
                [&](Driver& d, Operation* op) { return kernel_operation(d, params, op); });
}

GPUROTA_SIM_API cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                               const CUDA_KERNEL_NODE_PARAMS_v1* v1) {
  if (v1 == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS wide = {.func = v1->func,
                                        .gridDimX = v1->gridDimX,
                                        .gridDimY = v1->gridDimY,
                                        .gridDimZ = v1->gridDimZ,
                                        .blockDimX = v1->blockDimX,
                                        .blockDimY = v1->blockDimY,
                                        .blockDimZ = v1->blockDimZ,
                                        .sharedMemBytes = v1->sharedMemBytes,
                                        .kernelParams = v1->kernelParams,
                                        .extra = v1->extra,
                                        .kern = nullptr,
                                        .ctx = nullptr};
  return cuGraphExecKernelNodeSetParams_v2(exec, node, &wide);
}

GPUROTA_SIM_API cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                               const CUDA_MEMCPY3D* params, CUcontext) {
  return change(exec, node,
                [&](Driver& d, Operation* op) { return copy_operation(d, params, op); });
}

GPUROTA_SIM_API cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                               const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
  return change(exec, node, [&](Driver& d, Operation* op) { return set_operation(d, params, op); });
}

GPUROTA_SIM_API cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                             const CUDA_HOST_NODE_PARAMS* params) {
  return change(exec, node, [&](Driver&, Operation* op) { return host_operation(params, op); });
}

GPUROTA_SIM_API cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node,
                                                   CUevent event) {
  return change(exec, node, [&](Driver& d, Operation* op) {
    *op = EventRecordOp{event};
    return d.events.find(event) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

GPUROTA_SIM_API cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node,
                                                 CUevent event) {
  return change(exec, node, [&](Driver& d, Operation* op) {
    *op = EventWaitOp{event};
    return d.events.find(event) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

GPUROTA_SIM_API cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                         CUgraphNodeParams* params) {
  return change(exec, node, [&](Driver& d, Operation* op) { return any_operation(d, params, op); });
}

GPUROTA_SIM_API cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode origin, unsigned enabled) {
  const ExecCall call(exec);
  if (call.failed()) return call.error();
  ExecNode* node = call.find(origin);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUgraphNodeType type = node_type(node->operation);
  const bool may = type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY ||
                   type == CU_GRAPH_NODE_TYPE_MEMSET;
  if (!may) return CUDA_ERROR_INVALID_VALUE;
  node->is_enabled = enabled != 0;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode origin, unsigned* enabled) {
  const ExecCall call(exec);
  if (call.failed()) return call.error();
  const ExecNode* node = call.find(origin);
  if (node == nullptr || enabled == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *enabled = node->is_enabled ? 1 : 0;
  return CUDA_SUCCESS;
}
