// Graphs and their instantiations. Under the driver's lock.
#pragma once

#include "sim/cuda/driver.h"
#include "sim/cuda/operation.h"
#include "sim/cuda/user_object.h"

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace gpurota::sim {

struct GraphNode {
  Graph* graph = nullptr;
  Operation operation;
  std::vector<GraphNode*> after;  // what it depends on
  CUcontext context = nullptr;
};

struct Graph {
  Graph() = default;
  // An empty graph that refers to the same user objects.
  explicit Graph(const UserObjects& referred) : objects(referred) {}

  std::vector<std::unique_ptr<GraphNode>> nodes;                 // in the order they were added
  std::unordered_map<const GraphNode*, GraphNode*> copied_from;  // in a clone: original -> node
  UserObjects objects;
};

struct ExecNode {
  Operation operation;
  std::vector<std::size_t> after;     // indices of earlier nodes
  const GraphNode* origin = nullptr;  // the node of the graph it was made from
  bool is_enabled = true;
};

// An instantiated graph: child graphs are flattened into it, and each node comes after all nodes
// that it depends on.
struct GraphExec {
  explicit GraphExec(const UserObjects& referred) : objects(referred) {}

  Context* context = nullptr;
  std::vector<ExecNode> nodes;
  unsigned long long flags = 0;
  WorkPtr last;                     // the last launch, which the next one waits for
  std::vector<CUdeviceptr> memory;  // of its allocation nodes
  UserObjects objects;
};

GraphNode* add_node(Graph& graph, Operation operation, const std::vector<GraphNode*>& after);
std::shared_ptr<Graph> clone_graph(const Graph& graph);
// The nodes in topological order; empty if the dependencies have a cycle.
std::optional<std::vector<const GraphNode*>> in_order(const Graph& graph);
CUgraphNodeType node_type(const Operation& operation);
// Whether the node belongs to a live graph.
bool is_node(const Driver& driver, const GraphNode* node);

bool lay_out(const Graph& graph, std::vector<ExecNode>& nodes);
CUresult launch_graph(Driver& driver, GraphExec& exec, Stream& stream);

// Adds the operation to the graph that `stream` captures.
CUresult capture_operation(Driver& driver, Stream& stream, Operation operation, GraphNode** out);

}  // namespace gpurota::sim
