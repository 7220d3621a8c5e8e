#include "sim/cuda/capture.h"

#include "sim/cuda/graph.h"
#include "sim/cuda/thread_local.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace gpurota::sim {

CUstreamCaptureMode& thread_capture_mode() {
  GPUROTA_SIM_THREAD_LOCAL CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

namespace {

#include "generated/capture_kinds.inc"

CaptureKind kind_of(std::string_view function) {
  constexpr std::string_view kBody = "_body";  // suffix added by GPUROTA_SIM_STREAM_API
  if (function.size() > kBody.size() && function.substr(function.size() - kBody.size()) == kBody) {
    function.remove_suffix(kBody.size());
  }
  const auto* found = std::lower_bound(
      std::begin(kCaptureKinds), std::end(kCaptureKinds), function,
      [](const auto& entry, std::string_view name) { return entry.function < name; });
  const bool is_known = found != std::end(kCaptureKinds) && found->function == function;
  return is_known ? found->kind : CaptureKind{};
}

CUresult invalidate(Capture& capture, CUresult result) {
  capture.is_valid = false;
  return result;
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
    if (is_mine || is_global) result = invalidate(*capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  return result;
}

bool has_blocking_stream(const Capture& capture) {
  return std::any_of(capture.frontier.begin(), capture.frontier.end(),
                     [](const auto& member) { return member.first->blocks_with_legacy(); });
}

CUresult check_legacy_stream(Driver& driver, const Context& context) {
  CUresult result = CUDA_SUCCESS;
  for (const auto& capture : driver.captures) {
    if (capture->context != &context || !has_blocking_stream(*capture)) continue;
    result = invalidate(*capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  }
  return result;
}

}  // namespace

CUresult check_captures(Driver& driver, const char* function) {
  if (driver.captures.empty() || function == nullptr) return CUDA_SUCCESS;
  return kind_of(function).is_unsafe ? check_unsafe_call(driver) : CUDA_SUCCESS;
}

CUresult check_captures(Driver& driver, Stream& stream, const char* function) {
  if (driver.captures.empty()) return CUDA_SUCCESS;
  const CaptureKind kind = kind_of(function);
  if (stream.capture) {
    if (!kind.ends_own_capture) return CUDA_SUCCESS;
    return invalidate(*stream.capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  if (stream.is_legacy && kind.needs_legacy) {
    const CUresult legacy = check_legacy_stream(driver, *stream.context);
    if (legacy != CUDA_SUCCESS) return legacy;
  }
  return kind.is_unsafe ? check_unsafe_call(driver) : CUDA_SUCCESS;
}

CUresult check_captures_in(Driver& driver, const Context& context) {
  CUresult result = CUDA_SUCCESS;
  for (const auto& capture : driver.captures) {
    if (capture->context != &context) continue;
    result = invalidate(*capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  return result;
}

bool is_legacy_in_use(const Driver& driver, const Context& context) {
  return std::any_of(driver.captures.begin(), driver.captures.end(), [&](const auto& capture) {
    return capture->context == &context && has_blocking_stream(*capture);
  });
}

void leave_capture(Stream& stream) {
  if (!stream.capture) return;
  Capture& capture = *stream.capture;
  const std::vector<GraphNode*>& nodes = capture.frontier[&stream];
  capture.left_behind.insert(capture.left_behind.end(), nodes.begin(), nodes.end());
  capture.frontier.erase(&stream);
  if (capture.origin != &stream) return;
  capture.origin = nullptr;  // no stream can end the capture any more
  capture.is_valid = false;
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
