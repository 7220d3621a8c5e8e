#include "interposer/swap/streams.h"

#include "interposer/device.h"
#include "interposer/driver.h"
#include "interposer/pool_charge.h"
#include "interposer/swap/devices.h"

namespace gpurota::interposer {
namespace {

constexpr uintptr_t kLastDefaultStream = 2;
constexpr uint32_t kMostForgotten = 16;  // events that are done, ended at one look

int32_t own_tid() { return static_cast<int32_t>(::syscall(SYS_gettid)); }

bool is_done(CUresult result) { return result != CUDA_ERROR_NOT_READY; }

// Work on a GPU that is not of the lease is somebody else's to wait for.
uint32_t bit_of(int slot) { return slot >= 0 ? 1u << slot : 0; }

// What is not ready is in flight; an error means that nothing will come any more. A GPU that is known to be
// busy is not asked again.
void ask_known_streams(SwapStreams& known, uint32_t* busy) {
  const auto query = GPUROTA_REAL(cuStreamQuery);
  const auto set = GPUROTA_REAL(cuCtxSetCurrent);
  if (query == nullptr || set == nullptr) return;
  CUcontext current = nullptr;
  known.streams.for_each([&](uint64_t key, const KnownStream& stream) {
    const uint32_t bit = bit_of(stream.slot);
    if ((*busy & bit) == bit) return;
    if (stream.context != current && set(stream.context) == CUDA_SUCCESS) current = stream.context;
    if (!is_done(query(reinterpret_cast<CUstream>(key)))) *busy |= bit;
  });
}

void ask_default_streams(State& s, uint32_t* busy) {
  const auto query = GPUROTA_REAL(cuStreamQuery);
  const auto set = GPUROTA_REAL(cuCtxSetCurrent);
  if (query == nullptr || set == nullptr) return;
  const uint32_t used = s.contexts.used.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < used; ++i) {
    CUcontext context = s.contexts.entries[i].context.load(std::memory_order_acquire);
    const uint32_t bit = bit_of(s.contexts.entries[i].slot.load());
    if (context == nullptr || (*busy & bit) == bit) continue;
    if (set(context) == CUDA_SUCCESS && !is_done(query(CU_STREAM_LEGACY))) *busy |= bit;
  }
  set(nullptr);
}

// Ends those of streams that are gone once they are done.
void ask_events(SwapStreams& known, uint32_t* busy) {
  const auto query = GPUROTA_REAL(cuEventQuery);
  const auto destroy = GPUROTA_REAL(cuEventDestroy_v2);
  if (query == nullptr || destroy == nullptr) return;
  uint64_t done[kMostForgotten];
  uint32_t count = 0;
  known.events.for_each([&](uint64_t key, const KnownEvent& known_event) {
    const InContext in(known_event.context);
    if (!is_done(query(known_event.event))) {
      *busy |= bit_of(known_event.slot);
    } else if (known_event.tid == 0 && count < kMostForgotten) {
      done[count++] = key;
    }
  });
  for (uint32_t i = 0; i < count; ++i) {
    KnownEvent gone{};
    if (known.events.take(done[i], &gone)) destroy(gone.event);
  }
}

// Events of ours behind the work that streams have now. Waiting for them harms no capture that begins
// meanwhile, as waiting for a stream or a context would.
struct Marks {
  static constexpr uint32_t kMost = 128;
  struct {
    CUevent event;
    CUcontext context;
  } marks[kMost];
  uint32_t count = 0;
  bool all = true;  // there was room for all

  void add(CUstream stream, CUcontext context) {
    const auto query = GPUROTA_REAL(cuStreamQuery);
    const auto create = GPUROTA_REAL(cuEventCreate);
    const auto record = GPUROTA_REAL(cuEventRecord);
    if (query == nullptr || create == nullptr || record == nullptr) return;
    const InContext in(context);
    if (is_done(query(stream))) return;
    all = all && count < kMost;
    CUevent event = nullptr;
    if (!all || create(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return;
    record(event, stream);
    marks[count++] = {event, context};
  }

  void wait() {
    const auto synchronize = GPUROTA_REAL(cuEventSynchronize);
    const auto destroy = GPUROTA_REAL(cuEventDestroy_v2);
    while (count > 0) {
      --count;
      const InContext in(marks[count].context);
      if (synchronize != nullptr) synchronize(marks[count].event);
      if (destroy != nullptr) destroy(marks[count].event);
    }
  }
};

// With the streams' mutex held, while nothing captures.
void mark_streams(State& s, Marks* marks) {
  marks->all = true;
  s.swap.streams.streams.for_each([&](uint64_t key, const KnownStream& stream) {
    marks->add(reinterpret_cast<CUstream>(key), stream.context);
  });
  const uint32_t used = s.contexts.used.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < used; ++i) {
    CUcontext context = s.contexts.entries[i].context.load(std::memory_order_acquire);
    if (context == nullptr || s.contexts.entries[i].slot.load() < 0) continue;
    marks->add(CU_STREAM_LEGACY, context);
  }
}

bool thread_events_done(SwapStreams& known) {
  const auto query = GPUROTA_REAL(cuEventQuery);
  bool done = true;
  known.events.for_each([&](uint64_t, const KnownEvent& event) {
    if (!done || query == nullptr) return;
    const InContext in(event.context);
    done = is_done(query(event.event));
  });
  return done;
}

}  // namespace

// Not asked where nothing has begun to capture, and nothing can have done so by a function that we do not know.
bool is_capturing(CUstream stream, bool per_thread) {
  const State& s = state();
  if (s.captures.load() == 0 && s.unhooked.count.load() == 0) return false;
  const auto ask =
      per_thread ? GPUROTA_REAL(cuStreamIsCapturing_ptsz) : GPUROTA_REAL(cuStreamIsCapturing);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return ask != nullptr && ask(stream, &status) == CUDA_SUCCESS &&
         status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

uint64_t key_of_stream(CUstream stream, bool per_thread) {
  const auto number = reinterpret_cast<uintptr_t>(stream);
  if (number > kLastDefaultStream) return number;
  const bool own = stream == CU_STREAM_PER_THREAD || (stream == nullptr && per_thread);
  CUcontext context = nullptr;
  const auto get = GPUROTA_REAL(cuCtxGetCurrent);
  if (get != nullptr) get(&context);
  const uint64_t thread = own ? static_cast<uint64_t>(own_tid()) : 0;
  return mix_key(reinterpret_cast<uint64_t>(context) + mix_key(thread + 1)) | 1;
}

uint32_t busy_slots(State& s) {
  SwapStreams& known = s.swap.streams;
  Lock lock(known.mutex);
  if (known.captures.load() != 0) return kAllBusy;
  uint32_t busy = 0;
  ask_known_streams(known, &busy);
  ask_events(known, &busy);
  ask_default_streams(s, &busy);
  return busy;
}

void mark_thread_stream(State& s) {
  const auto record = GPUROTA_REAL(cuEventRecord);
  const auto create = GPUROTA_REAL(cuEventCreate);
  const auto get = GPUROTA_REAL(cuCtxGetCurrent);
  CUcontext context = nullptr;
  if (record == nullptr || create == nullptr || get == nullptr || get(&context) != CUDA_SUCCESS ||
      is_capturing(CU_STREAM_PER_THREAD, false)) {
    return;
  }
  const RelaxedCapture relaxed;
  SwapStreams& known = s.swap.streams;
  Lock lock(known.mutex);
  KnownEvent* entry = known.events.put(key_of_stream(CU_STREAM_PER_THREAD, false));
  if (entry == nullptr) return;
  if (entry->event == nullptr && create(&entry->event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
    return;
  entry->context = context;
  entry->slot = place_of_context(context).slot;
  entry->tid = own_tid();
  record(entry->event, CU_STREAM_PER_THREAD);
}

bool wait_for_work(State& s) {
  Marks marks;
  for (;;) {
    {
      Lock contexts(s.swap.contexts_mutex);  // none of them goes while it is asked
      Lock lock(s.swap.streams.mutex);
      if (s.swap.streams.captures.load() != 0) return false;
      const RelaxedCapture relaxed;
      mark_streams(s, &marks);
    }
    marks.wait();
    if (marks.all) break;
  }
  // Another thread's own stream cannot be marked; the event of its last submission is looked at.
  for (;;) {
    {
      Lock contexts(s.swap.contexts_mutex);
      Lock lock(s.swap.streams.mutex);
      if (thread_events_done(s.swap.streams)) return true;
    }
    ErrnoGuard guard;
    sleep_ms(1);
  }
}

void forget_streams(State& s, CUcontext context) {
  SwapStreams& known = s.swap.streams;
  Lock lock(known.mutex);
  known.streams.remove_if([=](const KnownStream& stream) { return stream.context == context; },
                          [&](uint64_t, const KnownStream& stream) {
                            if (stream.capturing) known.captures.fetch_sub(1);
                          });
  known.events.remove_if([=](const KnownEvent& event) { return event.context == context; },
                         [](uint64_t, const KnownEvent&) {});
}

}  // namespace gpurota::interposer
