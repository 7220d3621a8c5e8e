// The objects behind the driver's handles. The driver's lock guards all fields unless a comment
// says otherwise. A handle is the object's address, valid while the driver's registry holds the
// object.
#pragma once

#include "abi/cuda_abi.h"
#include "sim/cuda/heap.h"
#include "sim/cuda/operation.h"
#include "sim/cuda/shared_event.h"
#include "sim/cuda/work.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace gpurota::sim {

struct Context;
struct Capture;

struct Stream {
  Context* context = nullptr;
  unsigned flags = 0;  // CU_STREAM_NON_BLOCKING
  int priority = 0;
  std::uint64_t id = 0;
  bool is_legacy = false;
  WorkPtr tail;                      // the stream's last piece of work
  std::vector<WorkPtr> extra;        // what else the next piece of work waits for: events
  std::shared_ptr<Capture> capture;  // the capture that the stream takes part in
  std::map<int, CUlaunchAttributeValue> attributes;  // only those that were set

  bool blocks_with_legacy() const { return !is_legacy && (flags & CU_STREAM_NON_BLOCKING) == 0; }
};

struct Event {
  Context* context = nullptr;
  unsigned flags = 0;
  WorkPtr recorded;                     // null: never recorded
  std::shared_ptr<SharedEvent> shared;  // if shared between processes: used instead of `recorded`
  std::shared_ptr<Capture> capture;     // recorded in a capture: stands for its `capture_nodes`
  std::vector<GraphNode*> capture_nodes;
};

struct Context {
  int ordinal = 0;  // among the devices this process sees
  int device = 0;   // of the machine
  unsigned flags = 0;
  std::uint64_t id = 0;
  bool is_primary = false;
  unsigned references = 1;     // cuCtxAttach
  Context* view_of = nullptr;  // of a green context: the context where its work runs
  unsigned version = 3020;
  std::uint64_t charged_bytes = 0;
  DeviceHeap heap;
  Stream legacy;
  std::map<std::thread::id, std::unique_ptr<Stream>> per_thread;
  std::vector<WorkPtr> orphans;  // last work of destroyed streams
  WorkPtr gate;                  // what all new work waits for (cuCtxWaitEvent); may be null
  std::set<Stream*> streams;     // all except the two default streams
  std::set<int> peers;           // ordinals that this context may access
  std::map<int, std::size_t> limits;
  CUfunc_cache cache_config = CU_FUNC_CACHE_PREFER_NONE;
  CUsharedconfig shared_config = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
  // The first error of asynchronous work; every later call returns it. Set by workers.
  std::atomic<CUresult> error{CUDA_SUCCESS};
};

// The primary context of a device: made on the first retain, destroyed with the last release.
struct Primary {
  Context* context = nullptr;
  unsigned references = 0;
  unsigned flags = 0;
};

}  // namespace gpurota::sim
