// Stream capture: while a capture lasts, work given to a stream becomes nodes of a graph, and some
// calls are forbidden. The build generates the table of forbidden calls from measurements of a real
// driver (src/abi/captures.tsv, docs/design/captures.md). Every call checks the table here.
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
  Stream* origin = nullptr;  // where the capture began and must end
  std::thread::id thread;    // that began the capture
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  bool is_valid = true;
  bool owns_graph = true;  // false: cuStreamBeginCaptureToGraph
  std::uint64_t id = 0;
  // For each stream that takes part, the nodes that its next node depends on.
  std::map<Stream*, std::vector<GraphNode*>> frontier;
  std::vector<GraphNode*> left_behind;  // frontiers of streams destroyed during the capture
};

// The effect of a function on captures under way.
struct CaptureKind {
  bool is_unsafe = false;         // forbidden, unless the thread or the capture is relaxed
  bool ends_own_capture = false;  // when aimed at a stream that captures
  bool needs_legacy = true;       // the legacy stream must be in order with all blocking streams
};

// Checks whether captures under way allow a call. Success, or the error after the affected captures
// were made invalid. `function` is the name of an exported function, or of its `_body`; any other
// name is allowed.
CUresult check_captures(Driver& driver, const char* function);
// Like check_captures above, for a call that targets a stream.
CUresult check_captures(Driver& driver, Stream& stream, const char* function);
// Like check_captures above, for a call about all work of `context`.
CUresult check_captures_in(Driver& driver, const Context& context);
// Whether a stream that waits for the legacy stream of `context` takes part in a capture.
bool is_legacy_in_use(const Driver& driver, const Context& context);

// Takes a stream that is being destroyed out of its capture. The stream's captured work must still
// be joined to the stream where the capture began.
void leave_capture(Stream& stream);

// How the calling thread treats unsafe calls (cuThreadExchangeStreamCaptureMode).
CUstreamCaptureMode& thread_capture_mode();

}  // namespace gpurota::sim
