// Events: recording them, waiting for them in streams and in the program, and timing.
#include "sim/cuda/capture.h"
#include "sim/cuda/graph.h"
#include "sim/cuda/stream.h"

#include <algorithm>

using gpurota::sim::Call;
using gpurota::sim::Context;
using gpurota::sim::ContextCall;
using gpurota::sim::Event;
using gpurota::sim::EventRecordOp;
using gpurota::sim::EventWaitOp;
using gpurota::sim::GraphNode;
using gpurota::sim::SharedEvent;
using gpurota::sim::Stream;
using gpurota::sim::StreamCall;
using gpurota::sim::Work;

namespace {

constexpr unsigned kEventFlags =
    CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;

CUresult record(CUevent handle, CUstream stream_handle, unsigned flags) {
  StreamCall call(stream_handle);
  if (call.failed()) return call.error();
  Event* event = call.driver().events.find(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if ((flags & ~1U) != 0) return CUDA_ERROR_INVALID_VALUE;
  Stream& stream = call.stream();
  if (event->context != stream.context) return CUDA_ERROR_INVALID_HANDLE;
  if (stream.capture) {
    if (!stream.capture->is_valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (event->shared) return gpurota::sim::unsupported("an interprocess event in a capture");
    if (flags == CU_EVENT_RECORD_EXTERNAL) {
      return call.submit(EventRecordOp{handle}, StreamCall::Wait::kNo);
    }
    event->capture = stream.capture;
    event->capture_nodes = stream.capture->frontier[&stream];
    return CUDA_SUCCESS;
  }
  if (flags == CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_ILLEGAL_STATE;
  event->capture = nullptr;
  event->capture_nodes.clear();
  if (event->shared) {
    const std::uint64_t number = event->shared->begin();
    event->recorded = gpurota::sim::append(call.driver(), stream, [shared = event->shared, number] {
      shared->done(number);
      return CUDA_SUCCESS;
    });
    return CUDA_SUCCESS;
  }
  event->recorded = gpurota::sim::append(call.driver(), stream, nullptr);
  return CUDA_SUCCESS;
}

void join(Stream& stream, const Event& event) {
  stream.capture = event.capture;
  std::vector<GraphNode*>& frontier = event.capture->frontier[&stream];
  for (GraphNode* node : event.capture_nodes) {
    if (std::find(frontier.begin(), frontier.end(), node) == frontier.end()) {
      frontier.push_back(node);
    }
  }
}

CUresult wait_for(CUstream stream_handle, CUevent handle, unsigned flags) {
  StreamCall call(stream_handle);
  if (call.failed()) return call.error();
  Event* event = call.driver().events.find(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if ((flags & ~1U) != 0) return CUDA_ERROR_INVALID_VALUE;
  Stream& stream = call.stream();
  if (stream.capture && event->shared) {
    return gpurota::sim::unsupported("an interprocess event in a capture");
  }
  if (stream.capture && flags == CU_EVENT_WAIT_EXTERNAL) {
    return call.submit(EventWaitOp{handle}, StreamCall::Wait::kNo);
  }
  if (event->capture) {
    if (!event->capture->is_valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream.capture && stream.capture != event->capture) return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    if (stream.is_legacy) {  // the legacy stream cannot join a capture
      event->capture->is_valid = false;
      return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    join(stream, *event);
    return CUDA_SUCCESS;
  }
  if (stream.capture) {
    // The captured work would depend on work outside the graph.
    stream.capture->is_valid = false;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (event->shared) {
    const std::uint64_t number = event->shared->latest();
    if (event->shared->is_done(number)) return CUDA_SUCCESS;
    gpurota::sim::append(call.driver(), stream, [shared = event->shared, number] {
      shared->wait(number);
      return CUDA_SUCCESS;
    });
    return CUDA_SUCCESS;
  }
  if (event->recorded && !event->recorded->is_done()) {
    stream.extra.push_back(event->recorded);
    gpurota::sim::append(call.driver(), stream, nullptr);
  }
  return CUDA_SUCCESS;
}

CUresult destroy(CUevent handle) {
  const ContextCall call;
  if (call.failed()) return call.error();
  Event* event = call.driver().events.find(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  (void)call.driver().events.take(event);
  return CUDA_SUCCESS;
}

CUresult elapsed(float* milliseconds, CUevent start_handle, CUevent end_handle) {
  const ContextCall call;
  if (call.failed()) return call.error();
  const Event* start = call.driver().events.find(start_handle);
  const Event* end = call.driver().events.find(end_handle);
  if (start == nullptr || end == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (start->capture || end->capture) return CUDA_ERROR_CAPTURED_EVENT;
  if (((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) != 0 || !start->recorded ||
      !end->recorded) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (!start->recorded->is_done() || !end->recorded->is_done()) return CUDA_ERROR_NOT_READY;
  const auto from = static_cast<std::int64_t>(start->recorded->finished_ns());
  const auto to = static_cast<std::int64_t>(end->recorded->finished_ns());
  *milliseconds = static_cast<float>(static_cast<double>(to - from) / 1e6);
  return CUDA_SUCCESS;
}

// A query about the work before an event. An event recorded in a capture cannot answer: the query
// fails and invalidates the capture.
class EventQuestion : public ContextCall {
 public:
  EventQuestion(CUevent handle, const char* function) : ContextCall(nullptr, function) {
    if (failed()) return;
    event_ = driver_.events.find(handle);
    if (event_ == nullptr) {
      error_ = CUDA_ERROR_INVALID_HANDLE;
    } else if (event_->capture) {
      event_->capture->is_valid = false;
      error_ = CUDA_ERROR_CAPTURED_EVENT;
    } else {
      error_ = gpurota::sim::check_captures(driver_, function);
    }
  }
  const Event& event() const { return *event_; }

 private:
  Event* event_ = nullptr;
};

// A call about all work of a context. The call fails while any stream of the context captures.
class WholeContextCall : public Call {
 public:
  WholeContextCall(CUcontext handle, CUevent event) {
    if (failed()) return;
    context_ = driver_.contexts.find(handle);
    if (context_ != nullptr && context_->view_of != nullptr) {
      context_ = driver_.contexts.find(context_->view_of);
    }
    event_ = driver_.events.find(event);
    if (context_ == nullptr) {
      error_ = CUDA_ERROR_INVALID_CONTEXT;
    } else if (event_ == nullptr) {
      error_ = CUDA_ERROR_INVALID_HANDLE;
    } else if (event_->shared) {
      error_ = gpurota::sim::unsupported("an interprocess event for a whole context");
    } else {
      error_ = gpurota::sim::check_captures_in(driver_, *context_);
    }
  }
  Context& context() const { return *context_; }
  Event& event() const { return *event_; }

 private:
  Context* context_ = nullptr;
  Event* event_ = nullptr;
};

}  // namespace

GPUROTA_SIM_API cuCtxRecordEvent(CUcontext handle, CUevent event_handle) {
  const WholeContextCall call(handle, event_handle);
  if (call.failed()) return call.error();
  Event& event = call.event();
  if (event.context != &call.context()) return CUDA_ERROR_INVALID_HANDLE;
  event.capture = nullptr;
  event.capture_nodes.clear();
  event.recorded = std::make_shared<Work>(nullptr);
  call.driver().engine.submit(event.recorded, call.driver().tails(call.context()));
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuCtxWaitEvent(CUcontext handle, CUevent event) {
  const WholeContextCall call(handle, event);
  if (call.failed()) return call.error();
  if (call.event().capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  auto gate = std::make_shared<Work>(nullptr);
  call.driver().engine.submit(gate, {call.context().gate, call.event().recorded});
  call.context().gate = std::move(gate);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuEventCreate(CUevent* out, unsigned flags) {
  const ContextCall call;
  if (call.failed()) return call.error();
  if (out == nullptr || (flags & ~kEventFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  const bool is_shared = (flags & CU_EVENT_INTERPROCESS) != 0;
  if (is_shared && (flags & CU_EVENT_DISABLE_TIMING) == 0) return CUDA_ERROR_INVALID_VALUE;
  auto event = std::make_unique<Event>();
  if (is_shared) event->shared = SharedEvent::create();
  if (is_shared && !event->shared) return CUDA_ERROR_OUT_OF_MEMORY;
  event->context = call.context();
  event->flags = flags;
  *out = reinterpret_cast<CUevent>(call.driver().events.add(std::move(event)));
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuEventDestroy_v2(CUevent event) { return destroy(event); }
GPUROTA_SIM_API cuEventDestroy(CUevent event) { return destroy(event); }

GPUROTA_SIM_STREAM_API(cuEventRecord, _ptsz, (CUevent event, CUstream stream), (event, stream)) {
  return record(event, stream, CU_EVENT_RECORD_DEFAULT);
}

GPUROTA_SIM_STREAM_API(cuEventRecordWithFlags, _ptsz,
                       (CUevent event, CUstream stream, unsigned flags), (event, stream, flags)) {
  return record(event, stream, flags);
}

GPUROTA_SIM_STREAM_API(cuStreamWaitEvent, _ptsz, (CUstream stream, CUevent event, unsigned flags),
                       (stream, event, flags)) {
  return wait_for(stream, event, flags);
}

GPUROTA_SIM_API cuEventQuery(CUevent handle) {
  const EventQuestion call(handle, __func__);
  if (call.failed()) return call.error();
  const Event& event = call.event();
  const bool is_done = event.shared ? event.shared->is_done(event.shared->latest())
                                    : !event.recorded || event.recorded->is_done();
  return is_done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

GPUROTA_SIM_API cuEventSynchronize(CUevent handle) {
  EventQuestion call(handle, __func__);
  if (call.failed()) return call.error();
  if (const auto shared = call.event().shared) {
    const std::uint64_t number = shared->latest();
    call.lock().unlock();
    shared->wait(number);
    call.lock().lock();
  } else {
    call.driver().wait_all({call.event().recorded}, call.lock());
  }
  const bool alive = call.driver().contexts.find(call.context()) != nullptr;
  return alive ? call.context()->error.load() : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

GPUROTA_SIM_API cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return elapsed(milliseconds, start, end);
}

GPUROTA_SIM_API cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  return elapsed(milliseconds, start, end);
}
