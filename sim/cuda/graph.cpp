#include "sim/cuda/graph.h"

#include "sim/cuda/capture.h"
#include "sim/cuda/pool.h"
#include "sim/cuda/stream.h"

#include <algorithm>

namespace gpurota::sim {

GraphNode* add_node(Graph& graph, Operation operation, const std::vector<GraphNode*>& after) {
  auto node = std::make_unique<GraphNode>();
  node->graph = &graph;
  node->operation = std::move(operation);
  node->after = after;
  graph.nodes.push_back(std::move(node));
  return graph.nodes.back().get();
}

std::shared_ptr<Graph> clone_graph(const Graph& graph) {
  auto copy = std::make_shared<Graph>(graph.objects);
  for (const auto& node : graph.nodes) {
    Operation operation = node->operation;
    if (auto* child = std::get_if<ChildOp>(&operation)) child->graph = clone_graph(*child->graph);
    GraphNode* twin = add_node(*copy, std::move(operation), {});
    twin->context = node->context;
    copy->copied_from[node.get()] = twin;
  }
  for (const auto& node : graph.nodes) {
    GraphNode* twin = copy->copied_from[node.get()];
    for (const GraphNode* before : node->after) twin->after.push_back(copy->copied_from[before]);
  }
  return copy;
}

std::optional<std::vector<const GraphNode*>> in_order(const Graph& graph) {
  std::vector<const GraphNode*> order;
  std::unordered_map<const GraphNode*, std::size_t> missing;
  std::unordered_map<const GraphNode*, std::vector<const GraphNode*>> followers;
  for (const auto& node : graph.nodes) {
    missing[node.get()] = node->after.size();
    for (const GraphNode* before : node->after) followers[before].push_back(node.get());
    if (node->after.empty()) order.push_back(node.get());
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const GraphNode* follower : followers[order[i]]) {
      if (--missing[follower] == 0) order.push_back(follower);
    }
  }
  if (order.size() != graph.nodes.size()) return std::nullopt;
  return order;
}

CUgraphNodeType node_type(const Operation& operation) {
  struct Type {
    CUgraphNodeType operator()(const EmptyOp&) const { return CU_GRAPH_NODE_TYPE_EMPTY; }
    CUgraphNodeType operator()(const KernelOp&) const { return CU_GRAPH_NODE_TYPE_KERNEL; }
    CUgraphNodeType operator()(const CopyOp&) const { return CU_GRAPH_NODE_TYPE_MEMCPY; }
    CUgraphNodeType operator()(const SetOp&) const { return CU_GRAPH_NODE_TYPE_MEMSET; }
    CUgraphNodeType operator()(const HostOp&) const { return CU_GRAPH_NODE_TYPE_HOST; }
    CUgraphNodeType operator()(const EventRecordOp&) const {
      return CU_GRAPH_NODE_TYPE_EVENT_RECORD;
    }
    CUgraphNodeType operator()(const EventWaitOp&) const { return CU_GRAPH_NODE_TYPE_WAIT_EVENT; }
    CUgraphNodeType operator()(const ChildOp&) const { return CU_GRAPH_NODE_TYPE_GRAPH; }
    CUgraphNodeType operator()(const AllocOp&) const { return CU_GRAPH_NODE_TYPE_MEM_ALLOC; }
    CUgraphNodeType operator()(const FreeOp&) const { return CU_GRAPH_NODE_TYPE_MEM_FREE; }
    CUgraphNodeType operator()(const MemOp&) const { return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP; }
  };
  return std::visit(Type{}, operation);
}

bool is_node(const Driver& driver, const GraphNode* node) {
  const auto holds = [node](const Graph& graph) {
    return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                       [node](const auto& own) { return own.get() == node; });
  };
  for (const auto& [raw, graph] : driver.graphs) {
    if (holds(*graph)) return true;
    for (const auto& own : graph->nodes) {
      const auto* child = std::get_if<ChildOp>(&own->operation);
      if (child != nullptr && holds(*child->graph)) return true;
    }
  }
  return false;
}

bool lay_out(const Graph& graph, std::vector<ExecNode>& nodes) {
  const auto order = in_order(graph);
  if (!order) return false;
  std::unordered_map<const GraphNode*, std::size_t> place;  // in `nodes`; a child graph: its end
  for (const GraphNode* node : *order) {
    std::vector<std::size_t> after;
    for (const GraphNode* before : node->after) after.push_back(place[before]);
    const auto* child = std::get_if<ChildOp>(&node->operation);
    if (child != nullptr) {
      const std::size_t first = nodes.size();
      nodes.push_back({EmptyOp{}, after, nullptr, true});
      if (!lay_out(*child->graph, nodes)) return false;
      after = {first};
      for (std::size_t i = first + 1; i < nodes.size(); ++i) {
        if (nodes[i].after.empty()) nodes[i].after.push_back(first);
        after.push_back(i);
      }
    }
    place[node] = nodes.size();
    Operation operation = child != nullptr ? Operation(EmptyOp{}) : node->operation;
    nodes.push_back({std::move(operation), std::move(after), node, true});
  }
  return true;
}

namespace {

void add_waits(const Driver& driver, const ExecNode& node, std::vector<WorkPtr>& after) {
  const auto* wait = std::get_if<EventWaitOp>(&node.operation);
  const Event* event = wait == nullptr ? nullptr : driver.events.find(wait->event);
  if (event != nullptr) after.push_back(event->recorded);
}

void note_record(const Driver& driver, const ExecNode& node, const WorkPtr& work) {
  const auto* record = std::get_if<EventRecordOp>(&node.operation);
  Event* event = record == nullptr ? nullptr : driver.events.find(record->event);
  if (event != nullptr) event->recorded = work;
}

bool has_body(const ExecNode& node) {
  const CUgraphNodeType type = node_type(node.operation);
  return node.is_enabled && type != CU_GRAPH_NODE_TYPE_EMPTY &&
         type != CU_GRAPH_NODE_TYPE_EVENT_RECORD && type != CU_GRAPH_NODE_TYPE_WAIT_EVENT &&
         type != CU_GRAPH_NODE_TYPE_MEM_ALLOC;
}

CUresult provide_memory(Driver& driver, const GraphExec& exec) {
  const bool frees_itself = (exec.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
  for (auto it = exec.memory.begin(); it != exec.memory.end(); ++it) {
    const CUresult result = provide_graph_memory(driver, *exec.context, *it, frees_itself);
    if (result == CUDA_SUCCESS) continue;
    while (it != exec.memory.begin()) (void)finish_graph_free(driver, *--it, false);
    return result;
  }
  for (const ExecNode& node : exec.nodes) {
    const auto* freed = std::get_if<FreeOp>(&node.operation);
    if (freed != nullptr && has_body(node)) expect_graph_free(driver, freed->address);
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult launch_graph(Driver& driver, GraphExec& exec, Stream& stream) {
  const CUresult memory = provide_memory(driver, exec);
  if (memory != CUDA_SUCCESS) return memory;
  std::vector<WorkPtr> before = dependencies(driver, stream);
  before.push_back(exec.last);
  std::vector<WorkPtr> works;
  for (const ExecNode& node : exec.nodes) {
    std::vector<WorkPtr> after;
    for (const std::size_t index : node.after) after.push_back(works[index]);
    if (node.after.empty()) after = before;
    add_waits(driver, node, after);
    auto work = std::make_shared<Work>(
        has_body(node) ? body_of(driver, *exec.context, node.operation, true) : nullptr);
    note_record(driver, node, work);
    works.push_back(work);
    driver.engine.submit(work, after);
  }
  auto end = std::make_shared<Work>(nullptr);
  works.insert(works.end(), before.begin(), before.end());
  driver.engine.submit(end, works);
  exec.last = end;
  stream.tail = end;
  return CUDA_SUCCESS;
}

}  // namespace gpurota::sim
