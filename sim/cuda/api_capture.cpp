// Stream capture.
#include "sim/cuda/capture.h"
#include "sim/cuda/graph.h"
#include "sim/cuda/stream.h"

#include <algorithm>
#include <set>

using gpurota::sim::Call;
using gpurota::sim::Capture;
using gpurota::sim::Driver;
using gpurota::sim::Event;
using gpurota::sim::Graph;
using gpurota::sim::GraphNode;
using gpurota::sim::Stream;
using gpurota::sim::StreamCall;

namespace {

CUresult begin(CUstream handle, CUstreamCaptureMode mode, Graph* into,
               const std::vector<GraphNode*>& after) {
  StreamCall call(handle);
  if (call.failed()) return call.error();
  Stream& stream = call.stream();
  if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  if (stream.is_legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream.capture) return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>();
  if (into != nullptr) {
    capture->graph = call.driver().graphs[into];
    capture->owns_graph = false;
  } else {
    capture->graph = std::make_shared<Graph>();
  }
  capture->context = stream.context;
  capture->origin = &stream;
  capture->thread = std::this_thread::get_id();
  capture->mode = mode;
  capture->id = call.machine().next_id();
  capture->frontier[&stream] = after;
  stream.capture = capture;
  call.driver().captures.push_back(capture);
  return CUDA_SUCCESS;
}

// Whether every other stream of the capture has joined its origin stream again.
bool is_joined(const Capture& capture) {
  std::set<const GraphNode*> reached;
  std::vector<const GraphNode*> todo;
  for (const GraphNode* node : capture.frontier.at(capture.origin)) todo.push_back(node);
  while (!todo.empty()) {
    const GraphNode* node = todo.back();
    todo.pop_back();
    if (!reached.insert(node).second) continue;
    todo.insert(todo.end(), node->after.begin(), node->after.end());
  }
  const auto is_reached = [&](const GraphNode* node) { return reached.count(node) > 0; };
  return std::all_of(capture.left_behind.begin(), capture.left_behind.end(), is_reached) &&
         std::all_of(capture.frontier.begin(), capture.frontier.end(), [&](const auto& member) {
           return std::all_of(member.second.begin(), member.second.end(), is_reached);
         });
}

void detach(Driver& driver, const std::shared_ptr<Capture>& capture) {
  for (const auto& [stream, nodes] : capture->frontier) {
    if (stream->capture == capture) stream->capture = nullptr;
  }
  for (Event* event : driver.events.select([&](const Event& e) { return e.capture == capture; })) {
    event->capture = nullptr;
    event->capture_nodes.clear();
  }
  std::erase(driver.captures, capture);
}

struct CaptureInfo {
  CUstreamCaptureStatus* status;
  cuuint64_t* id;
  CUgraph* graph;
  const CUgraphNode** nodes;
  const CUgraphEdgeData** edges;
  std::size_t* count;
};

CUresult get_info(CUstream handle, const CaptureInfo& out) {
  StreamCall call(handle, "cuStreamGetCaptureInfo_v2");
  if (call.failed()) return call.error();
  if (out.status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (out.edges != nullptr) *out.edges = nullptr;
  Stream& stream = call.stream();
  // Refuse only: a query of the capture status must not invalidate the capture.
  if (stream.is_legacy && gpurota::sim::is_legacy_in_use(call.driver(), *stream.context)) {
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  if (!stream.capture) {
    *out.status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  }
  Capture& capture = *stream.capture;
  *out.status =
      capture.is_valid ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  if (out.id != nullptr) *out.id = capture.id;
  if (out.graph != nullptr) {
    call.driver().graphs[capture.graph.get()] = capture.graph;
    *out.graph = reinterpret_cast<CUgraph>(capture.graph.get());
  }
  std::vector<GraphNode*>& nodes = capture.frontier[&stream];
  if (out.nodes != nullptr) *out.nodes = reinterpret_cast<const CUgraphNode*>(nodes.data());
  if (out.count != nullptr) *out.count = nodes.size();
  return CUDA_SUCCESS;
}

CUresult update(CUstream handle, CUgraphNode* nodes, std::size_t count, unsigned flags) {
  StreamCall call(handle);
  if (call.failed()) return call.error();
  if (!call.stream().capture) return CUDA_ERROR_ILLEGAL_STATE;
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (count > 0 && nodes == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::vector<GraphNode*>& frontier = call.stream().capture->frontier[&call.stream()];
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) frontier.clear();
  for (std::size_t i = 0; i < count; ++i) {
    frontier.push_back(reinterpret_cast<GraphNode*>(nodes[i]));
  }
  return CUDA_SUCCESS;
}

}  // namespace

GPUROTA_SIM_STREAM_API(cuStreamBeginCapture_v2, _ptsz, (CUstream stream, CUstreamCaptureMode mode),
                       (stream, mode)) {
  return begin(stream, mode, nullptr, {});
}

GPUROTA_SIM_STREAM_API(cuStreamBeginCapture, _ptsz, (CUstream stream), (stream)) {
  return begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, nullptr, {});
}

GPUROTA_SIM_STREAM_API(cuStreamBeginCaptureToGraph, _ptsz,
                       (CUstream stream, CUgraph graph, const CUgraphNode* nodes,
                        const CUgraphEdgeData* edges, std::size_t count, CUstreamCaptureMode mode),
                       (stream, graph, nodes, edges, count, mode)) {
  std::vector<GraphNode*> after;
  {
    const Call call;
    if (call.failed()) return call.error();
    if (edges != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    if (call.driver().graphs.count(reinterpret_cast<Graph*>(graph)) == 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    for (std::size_t i = 0; i < count; ++i) {
      after.push_back(reinterpret_cast<GraphNode*>(nodes[i]));
    }
  }
  return begin(stream, mode, reinterpret_cast<Graph*>(graph), after);
}

GPUROTA_SIM_STREAM_API(cuStreamEndCapture, _ptsz, (CUstream handle, CUgraph* out), (handle, out)) {
  StreamCall call(handle);
  if (call.failed()) return call.error();
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = nullptr;
  const std::shared_ptr<Capture> capture = call.stream().capture;
  if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != &call.stream()) {
    capture->is_valid = false;
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  const bool right_thread = capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
                            capture->thread == std::this_thread::get_id();
  if (!right_thread) return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  const bool joined = is_joined(*capture);
  detach(call.driver(), capture);
  if (!capture->is_valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!joined) return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  call.driver().graphs[capture->graph.get()] = capture->graph;
  *out = reinterpret_cast<CUgraph>(capture->graph.get());
  return CUDA_SUCCESS;
}

GPUROTA_SIM_STREAM_API(cuStreamIsCapturing, _ptsz, (CUstream stream, CUstreamCaptureStatus* status),
                       (stream, status)) {
  return get_info(stream, {status, nullptr, nullptr, nullptr, nullptr, nullptr});
}

GPUROTA_SIM_STREAM_API(cuStreamGetCaptureInfo, _ptsz,
                       (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id),
                       (stream, status, id)) {
  return get_info(stream, {status, id, nullptr, nullptr, nullptr, nullptr});
}

GPUROTA_SIM_STREAM_API(cuStreamGetCaptureInfo_v2, _ptsz,
                       (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                        CUgraph* graph, const CUgraphNode** nodes, std::size_t* count),
                       (stream, status, id, graph, nodes, count)) {
  return get_info(stream, {status, id, graph, nodes, nullptr, count});
}

GPUROTA_SIM_STREAM_API(cuStreamGetCaptureInfo_v3, _ptsz,
                       (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                        CUgraph* graph, const CUgraphNode** nodes, const CUgraphEdgeData** edges,
                        std::size_t* count),
                       (stream, status, id, graph, nodes, edges, count)) {
  return get_info(stream, {status, id, graph, nodes, edges, count});
}

GPUROTA_SIM_STREAM_API(cuStreamUpdateCaptureDependencies, _ptsz,
                       (CUstream stream, CUgraphNode* nodes, std::size_t count, unsigned flags),
                       (stream, nodes, count, flags)) {
  return update(stream, nodes, count, flags);
}

GPUROTA_SIM_STREAM_API(cuStreamUpdateCaptureDependencies_v2, _ptsz,
                       (CUstream stream, CUgraphNode* nodes, const CUgraphEdgeData* edges,
                        std::size_t count, unsigned flags),
                       (stream, nodes, edges, count, flags)) {
  return edges != nullptr ? CUDA_ERROR_NOT_SUPPORTED : update(stream, nodes, count, flags);
}

GPUROTA_SIM_API cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (mode == nullptr || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, gpurota::sim::thread_capture_mode());
  return CUDA_SUCCESS;
}
