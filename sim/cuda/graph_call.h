// Calls about graphs and their nodes. Included by api_graph*.cpp.
#pragma once

#include "sim/cuda/api.h"
#include "sim/cuda/graph.h"

namespace gpurota::sim {

class GraphCall : public Call {
 public:
  explicit GraphCall(CUgraph handle, const char* function = __builtin_FUNCTION()) : Call(function) {
    if (failed()) return;
    const auto found = driver_.graphs.find(reinterpret_cast<Graph*>(handle));
    if (found == driver_.graphs.end()) {
      error_ = CUDA_ERROR_INVALID_VALUE;
    } else {
      graph_ = found->second;
    }
  }
  Graph& graph() const { return *graph_; }
  const std::shared_ptr<Graph>& shared() const { return graph_; }

  // Adds a node after the given ones.
  CUresult add(CUgraphNode* out, const CUgraphNode* after, std::size_t count, Operation operation) {
    if (out == nullptr || (count > 0 && after == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    std::vector<GraphNode*> before;
    for (std::size_t i = 0; i < count; ++i) {
      auto* node = reinterpret_cast<GraphNode*>(after[i]);
      if (!is_node(driver_, node) || node->graph != graph_.get()) return CUDA_ERROR_INVALID_VALUE;
      before.push_back(node);
    }
    *out = reinterpret_cast<CUgraphNode>(add_node(*graph_, std::move(operation), before));
    return CUDA_SUCCESS;
  }

 private:
  std::shared_ptr<Graph> graph_;
};

class NodeCall : public Call {
 public:
  explicit NodeCall(CUgraphNode handle) : node_(reinterpret_cast<GraphNode*>(handle)) {
    if (!failed() && !is_node(driver_, node_)) error_ = CUDA_ERROR_INVALID_VALUE;
  }
  GraphNode& node() const { return *node_; }
  // The node's operation if it is a T; else null.
  template <class T>
  T* as() const {
    return std::get_if<T>(&node_->operation);
  }

 private:
  GraphNode* node_;
};

// Convert the structs of the API to operations. Under the driver's lock.
CUresult kernel_operation(Driver& driver, const CUDA_KERNEL_NODE_PARAMS* params, Operation* out);
CUresult copy_operation(Driver& driver, const CUDA_MEMCPY3D* params, Operation* out);
CUresult set_operation(Driver& driver, const CUDA_MEMSET_NODE_PARAMS* params, Operation* out);
CUresult host_operation(const CUDA_HOST_NODE_PARAMS* params, Operation* out);
CUresult any_operation(Driver& driver, CUgraphNodeParams* params, Operation* out);

}  // namespace gpurota::sim
