// Stream capture: while it lasts, what is given to a stream becomes nodes of a graph.
//
// Under the driver's lock.
#pragma once

#include "sim/cuda/driver.h"

#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace gpurota::sim {

struct Capture {
  std::shared_ptr<Graph> graph;
  Context* context = nullptr;
  Stream* origin = nullptr;  // where it began and has to end
  std::thread::id thread;    // that began it
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  bool is_valid = true;
  bool owns_graph = true;  // false: cuStreamBeginCaptureToGraph
  std::uint64_t id = 0;
  // Where each stream that takes part stands: what its next node depends on.
  std::map<Stream*, std::vector<GraphNode*>> frontier;
};

// Whether any capture is under way in the context; those become invalid.
bool invalidate_captures_in(Driver& driver, Context& context);

// What a call answers that could break a capture under way (allocation, free, query, synchronise):
// success, or the error after making the capture invalid.
CUresult check_unsafe_call(Driver& driver);
// As above, for work given to the legacy stream of `context`.
CUresult check_legacy_stream(Driver& driver, Context& context);

// The calling thread's way with unsafe calls (cuThreadExchangeStreamCaptureMode).
CUstreamCaptureMode& thread_capture_mode();

}  // namespace gpurota::sim
