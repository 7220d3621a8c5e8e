// Streams of a swap tenant from their creation to their end, captures from begin to end, and host
// functions: what must be known to say whether the tenant has anything in flight, and whether its
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

// Of a context that came about without us the current one tells the GPU.
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

// Its work goes on without it: an event of ours tells when that is done. Of a stream that belongs
// to a capture, also one that only joined it, nothing may be asked: what it was given before that
// is found out when nothing captures any more (nullptr). With the streams' mutex held.
void leave_event(KnownStreams& known, CUstream stream, const KnownStream& gone) {
  const RelaxedCapture relaxed;
  const Outside outside = Outside::unless_captured(stream, false);
  const InContext in(gone.context);  // an event of another could not be recorded there
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
    GPUROTA_OWN(cuEventDestroy_v2)(entry->event);  // what comes says more
  *entry = {event, gone.context, gone.slot, 0};
}

template <typename Real>
CUresult destroy(CUstream stream, Real real) {
  if (!swapping()) return real(stream);
  KnownStreams& known = state().streams;
  Lock lock(known.mutex);  // the worker asks streams under it: none may go meanwhile
  const KnownStream* found = known.streams.find(reinterpret_cast<uint64_t>(stream));
  const KnownStream stays = found != nullptr ? *found : KnownStream{nullptr, -1, false};
  if (found != nullptr) leave_event(known, stream, stays);
  // Before another stream can have its handle, and with it what was freed here for its like.
  g_swap.stream_gone(state(), reinterpret_cast<uint64_t>(stream));
  const CUresult result = real(stream);
  KnownStream gone{};
  if (result != CUDA_SUCCESS || !known.streams.take(reinterpret_cast<uint64_t>(stream), &gone)) {
    return result;
  }
  if (gone.capturing) known.captures.fetch_sub(1);
  return result;
}

// Waits for who holds the proof that nothing captures. One that fails counts too: then streams are
// asked in vain.
void count_capture() {
  State& s = state();
  const Lock lock(s.streams.mutex);
  s.captures.fetch_add(1);
}

// With the streams' mutex held: a question of the worker's to a stream that begins to capture would
// end that.
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
  // A thread's own stream is no stream that others could ask: it is known while it captures only.
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

// Not of the forked child's concern: the driver's threads, which use it, are not there.
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

// Driver calls of the function pass the gate: a call that waited in here would wait for itself.
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

// A captured one becomes a node, which runs any number of times: it stays as it is.
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
