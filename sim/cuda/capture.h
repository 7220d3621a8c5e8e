// Stream capture: while it lasts, what is given to a stream becomes nodes of a graph, and some
// calls are forbidden. Which, by kind, is made at build time of what was measured of a real driver
// (src/abi/captures.tsv, docs/design/captures.md); every call asks here.
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
  std::vector<GraphNode*> left_behind;  // where streams stood that were destroyed meanwhile
};

// The effect of a function on captures under way.
struct CaptureKind {
  bool is_unsafe = false;         // forbidden, but for threads and captures that are relaxed
  bool ends_own_capture = false;  // when aimed at a stream that captures
  bool needs_legacy = true;  // when aimed at the legacy stream: its order with all blocking ones
};

// The result of a call because of captures under way: success, or the error after making them
// invalid. `function` is exported, or the body of such a one; other names are of calls that are
// allowed.
CUresult check_captures(Driver& driver, const char* function);
// As above, for a call that is aimed at a stream.
CUresult check_captures(Driver& driver, Stream& stream, const char* function);
// As above, for a call about all work of `context`.
CUresult check_captures_in(Driver& driver, const Context& context);
// Whether a stream that waits for the legacy stream of `context` takes part in one.
bool is_legacy_in_use(const Driver& driver, const Context& context);

// A stream that is destroyed. Its work still has to come back to the stream where the capture
// began.
void leave_capture(Stream& stream);

// The calling thread's way with unsafe calls (cuThreadExchangeStreamCaptureMode).
CUstreamCaptureMode& thread_capture_mode();

}  // namespace gpurota::sim
