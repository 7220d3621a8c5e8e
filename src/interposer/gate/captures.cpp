// Records the streams of a swap tenant from creation to destruction, captures from begin to end,
// and host functions. These records tell whether the tenant has anything in flight, and whether its
// memory may move.
#include "interposer/account/device.h"
#include "interposer/account/state.h"
#include "interposer/account/swap_table.h"
#include "interposer/driver/own_calls.h"
#include "interposer/gate/gated.h"
#include "interposer/gate/streams.h"
#include "interposer/os/table.h"

namespace gpurota::interposer {
namespace {

// The slot of a context's GPU. For a context that was not made through our hooks, the current
// context gives the GPU.
int slot_of(CUcontext context) {
  const Place place = place_of_context(context);
  return place.kind == Place::Kind::kNoContext ? current_place().slot : place.slot;
}

CUresult stream_created(CUresult result, const CUstream* out) {
  if (result != CUDA_SUCCESS || !swapping()) return result;
  KnownStreams& known = state().streams;
  CUcontext context = nullptr;
  if (GPUROTA_OWN(cuStreamGetCtx)(Outside::unless_default(*out), *out, &context) != CUDA_SUCCESS) {
    context = current_context();
  }
  Lock lock(known.mutex);
  KnownStream* entry = known.streams.put(reinterpret_cast<uint64_t>(*out));
  if (entry != nullptr) *entry = {context, slot_of(context), false};
  return result;
}

// Records an event behind the stream's work, which continues after the stream is destroyed. A
// stream that belongs to a capture, or only joined one, must not be queried. For such a stream the
// event stays nullptr, and the stream's earlier work is found once nothing captures. Called with
// the streams' mutex held.
void leave_event(KnownStreams& known, CUstream stream, const KnownStream& gone) {
  const RelaxedCapture relaxed;
  const Outside outside = Outside::unless_captured(stream, false);
  const InContext in(gone.context);  // the event must be of the stream's context
  CUevent event = nullptr;
  if (outside && (GPUROTA_OWN(cuStreamQuery)(relaxed, outside, stream) != CUDA_ERROR_NOT_READY ||
                  GPUROTA_OWN(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS ||
                  GPUROTA_OWN(cuEventRecord)(outside, event, stream) != CUDA_SUCCESS)) {
    return;
  }
  const auto key = outside ? reinterpret_cast<uint64_t>(event) : key_of_unmarked(gone.context);
  KnownEvent* entry = known.events.put(key);
  if (entry == nullptr) return;
  if (entry->event != nullptr)
    GPUROTA_OWN(cuEventDestroy_v2)(entry->event);  // the new event covers more
  *entry = {event, gone.context, gone.slot, 0};
}

template <typename Real>
CUresult destroy(CUstream stream, Real real) {
  forget_stream_work(state(), stream);
  if (!swapping()) return real(stream);
  KnownStreams& known = state().streams;
  Lock lock(known.mutex);  // no stream is destroyed while the worker queries it
  const KnownStream* found = known.streams.find(reinterpret_cast<uint64_t>(stream));
  const KnownStream stays = found != nullptr ? *found : KnownStream{nullptr, -1, false};
  if (found != nullptr) leave_event(known, stream, stays);
  // Must come before `real`: after that a new stream may get the same handle, and memory freed in
  // this stream would count as freed in the new stream.
  g_swap.stream_gone(state(), reinterpret_cast<uint64_t>(stream));
  const CUresult result = real(stream);
  KnownStream gone{};
  if (result != CUDA_SUCCESS || !known.streams.take(reinterpret_cast<uint64_t>(stream), &gone)) {
    return result;
  }
  if (gone.capturing) known.captures.fetch_sub(1);
  return result;
}

// Waits while another thread holds the proof that nothing captures. A capture that fails to begin
// is counted too; the only harm is that streams are queried without need.
void count_capture() {
  State& s = state();
  const Lock lock(s.streams.mutex);
  s.captures.fetch_add(1);
}

// Begins the capture with the streams' mutex held: if the worker queried the stream meanwhile, the
// query would end the capture.
template <typename Call>
CUresult begin_capture(CUstream stream, bool per_thread, Call call) {
  count_capture();
  if (!swapping()) return call();
  const GatePass pass(GateClass::kResidency, stream, per_thread);
  if (pass.refused()) return kNotLet;
  KnownStreams& known = state().streams;
  Lock lock(known.mutex);
  const CUresult result = call();
  if (result != CUDA_SUCCESS) return result;
  KnownStream* entry = known.streams.put(key_of_stream(stream, per_thread));
  if (entry == nullptr || entry->capturing) return result;
  if (entry->context == nullptr) {
    entry->context = current_context();
    entry->slot = slot_of(entry->context);
  }
  entry->capturing = true;
  known.captures.fetch_add(1);
  return result;
}

// A capture may end without a graph: it was invalidated, or a stream that joined did not come back.
bool is_end_of_capture(CUresult result) {
  return result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
         result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
}

template <typename Call>
CUresult end_capture(CUstream stream, bool per_thread, Call call) {
  const CUresult result = call();
  if (is_end_of_capture(result)) state().captures.fetch_sub(1);
  if (!swapping() || is_capturing(stream, per_thread)) return result;
  KnownStreams& known = state().streams;
  const uint64_t key = key_of_stream(stream, per_thread);
  Lock lock(known.mutex);
  KnownStream* entry = known.streams.find(key);
  if (entry == nullptr || !entry->capturing) return result;
  entry->capturing = false;
  known.captures.fetch_sub(1);
  // Other threads cannot query a thread's own stream, so that stream is in `streams` only while it
  // captures.
  KnownStream gone{};
  if (key % 2 != 0) known.streams.take(key, &gone);
  return result;
}

// A host function of the program's, on its way through the driver.
struct HostCall {
  CUhostFn function;
  CUstreamCallback callback;
  void* data;
  uint32_t index;
};

struct HostCalls {
  Mutex mutex;
  Table<HostCall> calls;
};

// Need not be wiped by a fork: the driver's threads, which use it, do not exist in the child.
constinit HostCalls g_host_calls;

HostCall* keep(const HostCall& call) {
  Lock lock(g_host_calls.mutex);
  const uint32_t index = g_host_calls.calls.take();
  if (index == 0) return nullptr;
  HostCall& kept = g_host_calls.calls[index];
  kept = call;
  kept.index = index;
  return &kept;
}

HostCall let_go(void* data) {
  const HostCall call = *static_cast<HostCall*>(data);
  Lock lock(g_host_calls.mutex);
  g_host_calls.calls.give_back(call.index);
  return call;
}

// Driver calls that the host function makes pass the gate: a call that waited at the gate would
// wait for its own host function to end.
void run_function(void* data) {
  const HostCall call = let_go(data);
  Gate& gate = gate_of(state()).gate;
  gate.begin_callback();
  call.function(call.data);
  gate.end_callback();
}

void run_callback(CUstream stream, CUresult status, void* data) {
  const HostCall call = let_go(data);
  Gate& gate = gate_of(state()).gate;
  gate.begin_callback();
  call.callback(stream, status, call.data);
  gate.end_callback();
}

// A captured host function becomes a graph node, which runs any number of times, so it is passed on
// unwrapped.
template <typename Real>
CUresult launch_function(CUstream stream, bool per_thread, CUhostFn function, void* data,
                         Real real) {
  if (!swapping()) return real(stream, function, data);
  const GatePass pass(GateClass::kSubmits, stream, per_thread);
  if (pass.refused()) return kNotLet;
  const bool recorded = function == nullptr || is_capturing(stream, per_thread);
  HostCall* kept = recorded ? nullptr : keep({function, nullptr, data, 0});
  if (kept == nullptr) return real(stream, function, data);
  const CUresult result = real(stream, run_function, kept);
  if (result != CUDA_SUCCESS) let_go(kept);
  return result;
}

template <typename Real>
CUresult add_callback(CUstream stream, bool per_thread, CUstreamCallback function, void* data,
                      unsigned flags, Real real) {
  if (!swapping()) return real(stream, function, data, flags);
  const GatePass pass(GateClass::kSubmits, stream, per_thread);
  if (pass.refused()) return kNotLet;
  HostCall* kept = function == nullptr ? nullptr : keep({nullptr, function, data, 0});
  if (kept == nullptr) return real(stream, function, data, flags);
  const CUresult result = real(stream, run_callback, kept, flags);
  if (result != CUDA_SUCCESS) let_go(kept);
  return result;
}

}  // namespace
}  // namespace gpurota::interposer

namespace interposer = gpurota::interposer;

CUresult cuStreamCreate(CUstream* out, unsigned int flags) {
  GPUROTA_ENTER(cuStreamCreate, out, flags);
  return interposer::stream_created(real(out, flags), out);
}

CUresult cuStreamCreateWithPriority(CUstream* out, unsigned int flags, int priority) {
  GPUROTA_ENTER(cuStreamCreateWithPriority, out, flags, priority);
  return interposer::stream_created(real(out, flags, priority), out);
}

CUresult cuGreenCtxStreamCreate(CUstream* out, CUgreenCtx green, unsigned int flags, int priority) {
  GPUROTA_ENTER(cuGreenCtxStreamCreate, out, green, flags, priority);
  return interposer::stream_created(real(out, green, flags, priority), out);
}

CUresult cuStreamDestroy(CUstream stream) {
  GPUROTA_ENTER(cuStreamDestroy, stream);
  return interposer::destroy(stream, real);
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  GPUROTA_ENTER(cuStreamDestroy_v2, stream);
  return interposer::destroy(stream, real);
}

CUresult cuStreamBeginCapture(CUstream stream) {
  GPUROTA_ENTER(cuStreamBeginCapture, stream);
  return interposer::begin_capture(stream, false, [=] { return real(stream); });
}

CUresult cuStreamBeginCapture_ptsz(CUstream stream) {
  GPUROTA_ENTER(cuStreamBeginCapture_ptsz, stream);
  return interposer::begin_capture(stream, true, [=] { return real(stream); });
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  GPUROTA_ENTER(cuStreamBeginCapture_v2, stream, mode);
  return interposer::begin_capture(stream, false, [=] { return real(stream, mode); });
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  GPUROTA_ENTER(cuStreamBeginCapture_v2_ptsz, stream, mode);
  return interposer::begin_capture(stream, true, [=] { return real(stream, mode); });
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* before,
                                     const CUgraphEdgeData* edges, size_t count,
                                     CUstreamCaptureMode mode) {
  GPUROTA_ENTER(cuStreamBeginCaptureToGraph, stream, graph, before, edges, count, mode);
  return interposer::begin_capture(stream, false,
                                   [=] { return real(stream, graph, before, edges, count, mode); });
}

CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode* before,
                                          const CUgraphEdgeData* edges, size_t count,
                                          CUstreamCaptureMode mode) {
  GPUROTA_ENTER(cuStreamBeginCaptureToGraph_ptsz, stream, graph, before, edges, count, mode);
  return interposer::begin_capture(stream, true,
                                   [=] { return real(stream, graph, before, edges, count, mode); });
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* out) {
  GPUROTA_ENTER(cuStreamEndCapture, stream, out);
  return interposer::end_capture(stream, false, [=] { return real(stream, out); });
}

CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph* out) {
  GPUROTA_ENTER(cuStreamEndCapture_ptsz, stream, out);
  return interposer::end_capture(stream, true, [=] { return real(stream, out); });
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  GPUROTA_ENTER(cuLaunchHostFunc, stream, function, data);
  return interposer::launch_function(stream, false, function, data, real);
}

CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn function, void* data) {
  GPUROTA_ENTER(cuLaunchHostFunc_ptsz, stream, function, data);
  return interposer::launch_function(stream, true, function, data, real);
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback function, void* data,
                             unsigned int flags) {
  GPUROTA_ENTER(cuStreamAddCallback, stream, function, data, flags);
  return interposer::add_callback(stream, false, function, data, flags, real);
}

CUresult cuStreamAddCallback_ptsz(CUstream stream, CUstreamCallback function, void* data,
                                  unsigned int flags) {
  GPUROTA_ENTER(cuStreamAddCallback_ptsz, stream, function, data, flags);
  return interposer::add_callback(stream, true, function, data, flags, real);
}
