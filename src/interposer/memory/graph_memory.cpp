// Memory of graphs: allocation nodes, including those that a capture makes of calls of
// cuMemAllocAsync.
//
// A node has its addresses from the start. The driver backs these addresses with memory when the
// graph is uploaded or launched. The memory stays with the stream of the launch, and the driver may
// share it between graphs. So the most that a graph could need is added up when the graph is
// instantiated, and taken from the headroom around a launch. As for pools, the charge is the memory
// that the driver reports as reserved for graphs. A graph that already has its memory is launched
// without a reservation.
#include "interposer/driver/driver.h"
#include "interposer/driver/own_calls.h"
#include "interposer/gate/gated.h"
#include "interposer/memory/linear.h"
#include "interposer/memory/pool_charge.h"
#include "interposer/memory/pool_settlement.h"
#include "interposer/memory/reserve.h"
#include "interposer/os/debug.h"

namespace gpurota::interposer {
namespace {

constexpr size_t kNodesOnStack = 128;
constexpr int kDeepest = 32;  // child graphs in child graphs

// The nodes of a graph, in memory of our own.
class Nodes {
 public:
  explicit Nodes(CUgraph graph) {
    size_t count = 0;
    if (GPUROTA_OWN(cuGraphGetNodes)(graph, nullptr, &count) != CUDA_SUCCESS) return;
    if (count > kNodesOnStack) {
      ErrnoGuard guard;
      bytes_ = count * sizeof(CUgraphNode);
      nodes_ = static_cast<CUgraphNode*>(map_memory(bytes_, 0));
      if (nodes_ == nullptr) return;
    }
    if (GPUROTA_OWN(cuGraphGetNodes)(graph, nodes_, &count) == CUDA_SUCCESS) count_ = count;
  }
  ~Nodes() {
    if (nodes_ == few_ || nodes_ == nullptr) return;
    ErrnoGuard guard;
    ::munmap(nodes_, bytes_);
  }
  Nodes(const Nodes&) = delete;
  Nodes& operator=(const Nodes&) = delete;
  const CUgraphNode* begin() const { return nodes_; }
  const CUgraphNode* end() const { return nodes_ + count_; }

 private:
  CUgraphNode few_[kNodesOnStack] = {};
  CUgraphNode* nodes_ = few_;
  size_t count_ = 0;
  size_t bytes_ = 0;
};

// Adds an allocation node's bytes. False if they are not on a GPU of the lease: host memory, or
// foreign.
bool add_node(State& s, CUgraphNode node, GraphNeed* need) {
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  if (GPUROTA_OWN(cuGraphMemAllocNodeGetParams)(node, &params) != CUDA_SUCCESS) return false;
  if (params.poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return false;
  const CUdevice device = params.poolProps.location.id;
  const Pool* pool = graph_pool(s, device);
  if (pool == nullptr) {
    need->foreign = true;
    return false;
  }
  s.slots[pool->slot].graph_device.store(device + 1, std::memory_order_relaxed);
  need->bytes[pool->slot] += most_for(params.bytesize);
  return true;
}

bool add_needs(State& s, CUgraph graph, GraphNeed* need, int depth) {
  if (depth > kDeepest) {
    need->foreign = true;  // nodes deeper than this are not counted
    return false;
  }
  bool any = false;
  for (const CUgraphNode node : Nodes(graph)) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    if (GPUROTA_OWN(cuGraphNodeGetType)(node, &type) != CUDA_SUCCESS) continue;
    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) any |= add_node(s, node, need);
    if (type != CU_GRAPH_NODE_TYPE_GRAPH) continue;
    CUgraph child = nullptr;
    if (GPUROTA_OWN(cuGraphChildGraphNodeGetGraph)(node, &child) != CUDA_SUCCESS) continue;
    any |= add_needs(s, child, need, depth + 1);
  }
  return any;
}

Pool* pool_of_slot(State& s, int slot) {
  const int32_t device = s.slots[slot].graph_device.load(std::memory_order_relaxed);
  return device > 0 ? graph_pool(s, device - 1) : nullptr;
}

uint32_t trims_of(State& s, const GraphNeed& need) {
  uint32_t sum = 0;
  for (int slot = 0; slot < GPUROTA_SLOTS; ++slot) {
    const Pool* pool = need.bytes[slot] != 0 ? pool_of_slot(s, slot) : nullptr;
    if (pool != nullptr) sum += pool->trims.load();
  }
  return sum;
}

// Identifies a stream for as long as it lives; 0 for the default stream of a thread, which only
// that thread can name.
uint64_t stream_key(CUstream stream, bool per_thread) {
  if (stream == CU_STREAM_PER_THREAD || (stream == nullptr && per_thread)) return 0;
  return stream == nullptr ? 1 : reinterpret_cast<uint64_t>(stream);
}

void remember_exec(State& s, CUgraphExec exec, const GraphNeed& need) {
  Lock lock(memory_of(s).graphs.mutex);
  GraphNeed* entry = memory_of(s).graphs.execs.put(reinterpret_cast<uint64_t>(exec));
  if (entry != nullptr) *entry = need;
  memory_of(s).graphs.with_memory.store(memory_of(s).graphs.execs.size(),
                                        std::memory_order_relaxed);
}

bool find_exec(State& s, CUgraphExec exec, GraphNeed* need) {
  Lock lock(memory_of(s).graphs.mutex);
  const GraphNeed* entry = memory_of(s).graphs.execs.find(reinterpret_cast<uint64_t>(exec));
  if (entry != nullptr) *need = *entry;
  return entry != nullptr;
}

// Keeps the caller inside all graph pools in which `need` has bytes.
class InsideAll {
 public:
  InsideAll(State& s, const GraphNeed& need) : s_(s), need_(need) { add(1); }
  ~InsideAll() { add(-1); }
  InsideAll(const InsideAll&) = delete;
  InsideAll& operator=(const InsideAll&) = delete;

 private:
  void add(int by) {
    for (int slot = 0; slot < GPUROTA_SLOTS; ++slot) {
      Pool* pool = need_.bytes[slot] != 0 ? pool_of_slot(s_, slot) : nullptr;
      if (pool == nullptr) continue;
      pool->inside.fetch_add(by);
    }
  }
  State& s_;
  const GraphNeed& need_;
};

// Bytes that were taken for a launch, to be settled after it.
class Room {
 public:
  explicit Room(State& s) : s_(s) {}

  bool make(const GraphNeed& need) {
    for (int slot = 0; slot < GPUROTA_SLOTS; ++slot) {
      if (need.bytes[slot] == 0 || make_on(slot, need.bytes[slot])) continue;
      give_back();
      return false;
    }
    return true;
  }
  void wait_begins() {
    for (Flight& flight : flights_) flight.wait_begins();
  }
  void wait_ends() {
    for (Flight& flight : flights_) flight.wait_ends();
  }
  void settle_all() {
    for (int slot = 0; slot < GPUROTA_SLOTS; ++slot) {
      if (!used_[slot]) continue;
      Pool* pool = pool_of_slot(s_, slot);
      if (pool == nullptr || settle(s_, *pool, taken_[slot], &flights_[slot])) continue;
      trim(*pool);
      settle_pools(slot);
    }
  }

 private:
  void give_back() {
    for (int slot = 0; slot < GPUROTA_SLOTS; ++slot) {
      if (used_[slot]) put(slot, taken_[slot]);
    }
  }
  // Does not count on memory that idle graphs hold, because the driver shares such memory between
  // graphs as it likes. reserve() has the driver release that memory, and then the graph may grow.
  bool make_on(int slot, int64_t bytes) {
    Pool* pool = pool_of_slot(s_, slot);
    if (pool == nullptr) return true;
    const int64_t growth = growth_for(s_, *pool, static_cast<uint64_t>(bytes));
    // If an upload has brought the graph's memory already, the memory is charged twice for a
    // moment.
    flights_[slot].begin(s_.slots[slot]);
    const Answer answer = reserve(slot, growth, &flights_[slot]);
    if (answer != Answer::kYes) {
      refuse(slot, static_cast<uint64_t>(bytes), answer);
      return false;
    }
    used_[slot] = true;
    taken_[slot] = growth;
    return true;
  }

  State& s_;
  Flight flights_[GPUROTA_SLOTS];
  int64_t taken_[GPUROTA_SLOTS] = {};
  bool used_[GPUROTA_SLOTS] = {};
};

// `stream`: the stream that has the graph's memory afterwards; 0: not known.
template <typename Call>
CUresult in_room(State& s, GraphNeed* need, uint64_t stream, Call call) {
  Room room(s);
  if (!room.make(*need)) return CUDA_ERROR_OUT_OF_MEMORY;
  const InsideAll inside(s, *need);
  need->trims = trims_of(s, *need);
  const CUresult result = call(&room);
  room.settle_all();
  need->launched = result == CUDA_SUCCESS && stream != 0;
  need->stream = stream;
  return result;
}

template <typename Call>
CUresult instantiate(CUgraphExec* out, CUgraph graph, bool uploads, Call driver) {
  State& s = state();
  const auto call = [=](Room* room = nullptr) {
    return gated(GateClass::kResidency, nullptr, false, driver, room);
  };
  GraphNeed need{};
  const bool any = add_needs(s, graph, &need, 0);
  if (need.foreign) {
    GPUROTA_DEBUG(
        "a graph with memory on a GPU that is not of this lease, or too deep, is refused");
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (!any) return call();
  const CUresult result = uploads ? in_room(s, &need, 0, call) : call();
  if (result == CUDA_SUCCESS) remember_exec(s, *out, need);
  return result;
}

void settle_needs(const GraphNeed& need) {
  for (int slot = 0; slot < GPUROTA_SLOTS; ++slot) {
    if (need.bytes[slot] != 0) settle_pools(slot);
  }
}

enum class Task { kUpload, kLaunch };

// The driver decides whether the memory comes with an upload, or only with the launch that follows
// the upload. A launch into a capture becomes a node of the new graph, and is found there.
template <typename Real>
CUresult submit(Task task, CUgraphExec exec, CUstream stream, bool per_thread, Real real) {
  State& s = state();
  const auto call = [=](Room* room = nullptr) {
    return gated(
        GateClass::kSubmits, stream, per_thread, [=] { return real(exec, stream); }, room);
  };
  GraphNeed need;
  if (memory_of(s).graphs.with_memory.load(std::memory_order_relaxed) == 0) return call();
  if (!find_exec(s, exec, &need) || is_capturing(stream, per_thread)) return call();
  const uint64_t key = task == Task::kLaunch ? stream_key(stream, per_thread) : 0;
  if (need.launched && key != 0 && need.stream == key) {
    const InsideAll inside(s, need);
    if (need.trims == trims_of(s, need)) return call();
  }
  const CUresult result = in_room(s, &need, key, call);
  if (result == CUDA_SUCCESS) remember_exec(s, exec, need);
  return result;
}

}  // namespace
}  // namespace gpurota::interposer

using gpurota::interposer::GraphNeed;
using gpurota::interposer::instantiate;
using gpurota::interposer::State;
using gpurota::interposer::state;
using gpurota::interposer::submit;
using gpurota::interposer::Task;

CUresult cuGraphInstantiate(CUgraphExec* out, CUgraph graph, CUgraphNode* error_node, char* log,
                            size_t log_bytes) {
  GPUROTA_ENTER(cuGraphInstantiate, out, graph, error_node, log, log_bytes);
  return instantiate(out, graph, false,
                     [=] { return real(out, graph, error_node, log, log_bytes); });
}

CUresult cuGraphInstantiate_v2(CUgraphExec* out, CUgraph graph, CUgraphNode* error_node, char* log,
                               size_t log_bytes) {
  GPUROTA_ENTER(cuGraphInstantiate_v2, out, graph, error_node, log, log_bytes);
  return instantiate(out, graph, false,
                     [=] { return real(out, graph, error_node, log, log_bytes); });
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph, unsigned long long flags) {
  GPUROTA_ENTER(cuGraphInstantiateWithFlags, out, graph, flags);
  return instantiate(out, graph, false, [=] { return real(out, graph, flags); });
}

CUresult cuGraphInstantiateWithParams(CUgraphExec* out, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  GPUROTA_ENTER(cuGraphInstantiateWithParams, out, graph, params);
  if (params == nullptr) return real(out, graph, params);
  const bool uploads = (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0;
  return instantiate(out, graph, uploads, [=] { return real(out, graph, params); });
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec* out, CUgraph graph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  GPUROTA_ENTER(cuGraphInstantiateWithParams_ptsz, out, graph, params);
  if (params == nullptr) return real(out, graph, params);
  const bool uploads = (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0;
  return instantiate(out, graph, uploads, [=] { return real(out, graph, params); });
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) {
  GPUROTA_ENTER(cuGraphUpload, exec, stream);
  return submit(Task::kUpload, exec, stream, false, real);
}

CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream) {
  GPUROTA_ENTER(cuGraphUpload_ptsz, exec, stream);
  return submit(Task::kUpload, exec, stream, true, real);
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  GPUROTA_ENTER(cuGraphLaunch, exec, stream);
  return submit(Task::kLaunch, exec, stream, false, real);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) {
  GPUROTA_ENTER(cuGraphLaunch_ptsz, exec, stream);
  return submit(Task::kLaunch, exec, stream, true, real);
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  GPUROTA_ENTER(cuGraphExecDestroy, exec);
  State& s = state();
  GraphNeed need{};
  bool known = false;
  if (memory_of(s).graphs.with_memory.load(std::memory_order_relaxed) != 0) {
    gpurota::interposer::Lock lock(memory_of(s).graphs.mutex);
    known = memory_of(s).graphs.execs.take(reinterpret_cast<uint64_t>(exec), &need);
    memory_of(s).graphs.with_memory.store(memory_of(s).graphs.execs.size(),
                                          std::memory_order_relaxed);
  }
  const CUresult result = real(exec);
  if (known && result != CUDA_SUCCESS) gpurota::interposer::remember_exec(s, exec, need);
  if (known) gpurota::interposer::settle_needs(need);
  return result;
}

CUresult cuDeviceGraphMemTrim(CUdevice device) {
  GPUROTA_ENTER(cuDeviceGraphMemTrim, device);
  gpurota::interposer::Pool* pool = gpurota::interposer::graph_pool(state(), device);
  if (pool == nullptr) return real(device);
  pool->trims.fetch_add(1);
  const CUresult result = real(device);
  pool->trims.fetch_add(1);
  gpurota::interposer::settle_pools(pool->slot);
  return result;
}
