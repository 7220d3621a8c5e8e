// Graphs: creating, cloning, querying and destroying them.
#include "sim/cuda/graph_call.h"

#include <algorithm>

using gpurota::sim::Call;
using gpurota::sim::Graph;
using gpurota::sim::GraphCall;
using gpurota::sim::GraphNode;
using gpurota::sim::NodeCall;

namespace {

CUgraphNode handle_of(const GraphNode* node) {
  return reinterpret_cast<CUgraphNode>(const_cast<GraphNode*>(node));
}

// Writes at most `*count` nodes; without a list, only counts the nodes.
CUresult list_nodes(const std::vector<const GraphNode*>& nodes, CUgraphNode* out,
                    std::size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (out != nullptr) {
    for (std::size_t i = 0; i < *count; ++i) {
      out[i] = i < nodes.size() ? handle_of(nodes[i]) : nullptr;
    }
    *count = std::min(*count, nodes.size());
  } else {
    *count = nodes.size();
  }
  return CUDA_SUCCESS;
}

void clear_edges(CUgraphEdgeData* edges, const std::size_t* count) {
  if (edges != nullptr && count != nullptr) std::fill_n(edges, *count, CUgraphEdgeData{});
}

CUresult dependencies(CUgraphNode handle, CUgraphNode* out, CUgraphEdgeData* edges,
                      std::size_t* count) {
  const NodeCall call(handle);
  if (call.failed()) return call.error();
  clear_edges(edges, count);
  return list_nodes({call.node().after.begin(), call.node().after.end()}, out, count);
}

CUresult dependents(CUgraphNode handle, CUgraphNode* out, CUgraphEdgeData* edges,
                    std::size_t* count) {
  const NodeCall call(handle);
  if (call.failed()) return call.error();
  std::vector<const GraphNode*> found;
  for (const auto& node : call.node().graph->nodes) {
    const auto& after = node->after;
    if (std::find(after.begin(), after.end(), &call.node()) != after.end()) {
      found.push_back(node.get());
    }
  }
  clear_edges(edges, count);
  return list_nodes(found, out, count);
}

CUresult edges_of(CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edges,
                  std::size_t* count) {
  const GraphCall call(handle);
  if (call.failed()) return call.error();
  std::vector<const GraphNode*> sources, targets;
  for (const auto& node : call.graph().nodes) {
    for (const GraphNode* before : node->after) {
      sources.push_back(before);
      targets.push_back(node.get());
    }
  }
  if (count == nullptr || (from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  clear_edges(edges, count);
  std::size_t again = *count;
  const CUresult result = list_nodes(sources, from, count);
  return result == CUDA_SUCCESS ? list_nodes(targets, to, &again) : result;
}

CUresult change_edges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                      const CUgraphEdgeData* edges, std::size_t count, bool adds) {
  const GraphCall call(handle);
  if (call.failed()) return call.error();
  if (count > 0 && (from == nullptr || to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  if (edges != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  for (std::size_t i = 0; i < count; ++i) {
    auto* source = reinterpret_cast<GraphNode*>(from[i]);
    auto* target = reinterpret_cast<GraphNode*>(to[i]);
    if (!is_node(call.driver(), source) || !is_node(call.driver(), target)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    auto& after = target->after;
    const auto found = std::find(after.begin(), after.end(), source);
    if (adds == (found != after.end())) return CUDA_ERROR_INVALID_VALUE;
    if (adds) {
      after.push_back(source);
    } else {
      after.erase(found);
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace

GPUROTA_SIM_API cuGraphCreate(CUgraph* out, unsigned flags) {
  const Call call;
  if (call.failed()) return call.error();
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  auto graph = std::make_shared<Graph>();
  *out = reinterpret_cast<CUgraph>(graph.get());
  call.driver().graphs[graph.get()] = std::move(graph);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuGraphDestroy(CUgraph handle) {
  const GraphCall call(handle);
  if (call.failed()) return call.error();
  call.driver().graphs.erase(&call.graph());
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuGraphClone(CUgraph* out, CUgraph original) {
  const GraphCall call(original);
  if (call.failed()) return call.error();
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto copy = gpurota::sim::clone_graph(call.graph());
  *out = reinterpret_cast<CUgraph>(copy.get());
  call.driver().graphs[copy.get()] = std::move(copy);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuGraphNodeFindInClone(CUgraphNode* out, CUgraphNode original, CUgraph clone) {
  const GraphCall call(clone);
  if (call.failed()) return call.error();
  const auto found = call.graph().copied_from.find(reinterpret_cast<GraphNode*>(original));
  if (out == nullptr || found == call.graph().copied_from.end()) return CUDA_ERROR_INVALID_VALUE;
  *out = handle_of(found->second);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType* type) {
  const NodeCall call(handle);
  if (call.failed()) return call.error();
  if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *type = gpurota::sim::node_type(call.node().operation);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuGraphGetNodes(CUgraph handle, CUgraphNode* out, std::size_t* count) {
  const GraphCall call(handle);
  if (call.failed()) return call.error();
  std::vector<const GraphNode*> nodes;
  for (const auto& node : call.graph().nodes) nodes.push_back(node.get());
  return list_nodes(nodes, out, count);
}

GPUROTA_SIM_API cuGraphGetRootNodes(CUgraph handle, CUgraphNode* out, std::size_t* count) {
  const GraphCall call(handle);
  if (call.failed()) return call.error();
  std::vector<const GraphNode*> nodes;
  for (const auto& node : call.graph().nodes) {
    if (node->after.empty()) nodes.push_back(node.get());
  }
  return list_nodes(nodes, out, count);
}

GPUROTA_SIM_API cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                                std::size_t* count) {
  return edges_of(graph, from, to, nullptr, count);
}

GPUROTA_SIM_API cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                                   CUgraphEdgeData* edges, std::size_t* count) {
  return edges_of(graph, from, to, edges, count);
}

GPUROTA_SIM_API cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* out, std::size_t* count) {
  return dependencies(node, out, nullptr, count);
}

GPUROTA_SIM_API cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* out,
                                              CUgraphEdgeData* edges, std::size_t* count) {
  return dependencies(node, out, edges, count);
}

GPUROTA_SIM_API cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* out,
                                             std::size_t* count) {
  return dependents(node, out, nullptr, count);
}

GPUROTA_SIM_API cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* out,
                                                CUgraphEdgeData* edges, std::size_t* count) {
  return dependents(node, out, edges, count);
}

GPUROTA_SIM_API cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from,
                                       const CUgraphNode* to, std::size_t count) {
  return change_edges(graph, from, to, nullptr, count, true);
}

GPUROTA_SIM_API cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from,
                                          const CUgraphNode* to, const CUgraphEdgeData* edges,
                                          std::size_t count) {
  return change_edges(graph, from, to, edges, count, true);
}

GPUROTA_SIM_API cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from,
                                          const CUgraphNode* to, std::size_t count) {
  return change_edges(graph, from, to, nullptr, count, false);
}

GPUROTA_SIM_API cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from,
                                             const CUgraphNode* to, const CUgraphEdgeData* edges,
                                             std::size_t count) {
  return change_edges(graph, from, to, edges, count, false);
}

GPUROTA_SIM_API cuGraphDestroyNode(CUgraphNode handle) {
  const NodeCall call(handle);
  if (call.failed()) return call.error();
  Graph& graph = *call.node().graph;
  for (const auto& node : graph.nodes) std::erase(node->after, &call.node());
  std::erase_if(graph.nodes, [&](const auto& node) { return node.get() == &call.node(); });
  return CUDA_SUCCESS;
}
