#include "sim/cuda/capture.h"

#include "sim/cuda/graph.h"
#include "sim/cuda/thread_local.h"

#include <algorithm>

namespace gpurota::sim {

CUstreamCaptureMode& thread_capture_mode() {
  GPUROTA_SIM_THREAD_LOCAL CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

bool invalidate_captures_in(Driver& driver, Context& context) {
  bool any = false;
  for (const auto& capture : driver.captures) {
    if (capture->context != &context) continue;
    capture->is_valid = false;
    any = true;
  }
  return any;
}

CUresult check_unsafe_call(Driver& driver) {
  const CUstreamCaptureMode mode = thread_capture_mode();
  if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  const auto me = std::this_thread::get_id();
  CUresult result = CUDA_SUCCESS;
  for (const auto& capture : driver.captures) {
    const bool is_mine = capture->thread == me && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool is_global =
        mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!is_mine && !is_global) continue;
    capture->is_valid = false;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

CUresult check_legacy_stream(Driver& driver, Context& context) {
  CUresult result = CUDA_SUCCESS;
  for (const auto& capture : driver.captures) {
    if (capture->context != &context) continue;
    const bool blocks =
        std::any_of(capture->frontier.begin(), capture->frontier.end(),
                    [](const auto& member) { return member.first->blocks_with_legacy(); });
    if (!blocks) continue;
    capture->is_valid = false;
    result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  return result;
}

CUresult capture_operation(Driver&, Stream& stream, Operation operation, GraphNode** out) {
  Capture& capture = *stream.capture;
  if (!capture.is_valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  std::vector<GraphNode*>& frontier = capture.frontier[&stream];
  GraphNode* node = add_node(*capture.graph, std::move(operation), frontier);
  node->context = reinterpret_cast<CUcontext>(capture.context);
  frontier = {node};
  if (out != nullptr) *out = node;
  return CUDA_SUCCESS;
}

}  // namespace gpurota::sim
