#include "interposer/gate/streams.h"

#include "interposer/account/device.h"
#include "interposer/driver/own_calls.h"

namespace gpurota::interposer {
namespace {

constexpr uint32_t kMostForgotten = 16;  // finished events destroyed in one pass

bool is_done(CUresult result) { return result != CUDA_ERROR_NOT_READY; }

// Work on a GPU outside the lease is not waited for.
uint32_t bit_of(int slot) { return slot >= 0 ? 1u << slot : 0; }

// Queries streams, with the streams' mutex held, while nothing captures.
struct StreamAsking {
  const RelaxedCapture relaxed;
  const NothingCaptures& nothing;

  bool is_done(CUstream stream) const {
    return interposer::is_done(GPUROTA_OWN(cuStreamQuery)(relaxed, nothing, stream));
  }
};

// A stream that is not ready has work in flight; after an error nothing more will come. Streams of
// a GPU that is known to be busy are not queried.
void ask_known_streams(KnownStreams& known, const StreamAsking& asking, uint32_t* busy) {
  CUcontext current = nullptr;
  known.streams.for_each([&](uint64_t key, const KnownStream& stream) {
    const uint32_t bit = bit_of(stream.slot);
    if ((*busy & bit) == bit) return;
    if (stream.context != current && GPUROTA_OWN(cuCtxSetCurrent)(stream.context) == CUDA_SUCCESS) {
      current = stream.context;
    }
    if (!asking.is_done(reinterpret_cast<CUstream>(key))) *busy |= bit;
  });
}

void ask_default_streams(State& s, const StreamAsking& asking, uint32_t* busy) {
  const uint32_t used = s.contexts.used.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < used; ++i) {
    CUcontext context = s.contexts.entries[i].context.load(std::memory_order_acquire);
    const uint32_t bit = bit_of(s.contexts.entries[i].slot.load());
    if (context == nullptr || (*busy & bit) == bit) continue;
    if (GPUROTA_OWN(cuCtxSetCurrent)(context) != CUDA_SUCCESS) continue;
    if (!asking.is_done(CU_STREAM_LEGACY)) *busy |= bit;
  }
  GPUROTA_OWN(cuCtxSetCurrent)(nullptr);
}

// A stream that was destroyed while in a capture left no event. Instead, an event is recorded
// behind all current work of the stream's context. A driver that cannot record such an event
// (before CUDA 12.5) leaves the stream's work unseen.
void mark_unmarked(KnownEvent& unmarked, const NothingCaptures& nothing) {
  if (unmarked.event != nullptr) return;
  const InContext in(unmarked.context);
  CUevent event = nullptr;
  if (GPUROTA_OWN(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return;
  GPUROTA_OWN(cuCtxRecordEvent)(nothing, unmarked.context, event);
  unmarked.event = event;
}

// Destroys the events of destroyed streams once their work is done.
void ask_events(KnownStreams& known, const NothingCaptures& nothing, uint32_t* busy) {
  uint64_t done[kMostForgotten];
  uint32_t count = 0;
  known.events.for_each([&](uint64_t key, KnownEvent& known_event) {
    mark_unmarked(known_event, nothing);
    const InContext in(known_event.context);
    if (!is_over(known_event.event)) {
      *busy |= bit_of(known_event.slot);
    } else if (known_event.tid == 0 && count < kMostForgotten) {
      done[count++] = key;
    }
  });
  for (uint32_t i = 0; i < count; ++i) {
    KnownEvent gone{};
    if (known.events.take(done[i], &gone)) GPUROTA_OWN(cuEventDestroy_v2)(gone.event);
  }
}

// Events of ours behind the current work of streams. Waiting for an event harms no capture that
// begins meanwhile; waiting for a stream or a context would.
struct Marks {
  static constexpr uint32_t kMost = 128;
  struct {
    CUevent event;
    CUcontext context;
  } marks[kMost];
  uint32_t count = 0;
  bool all = true;  // there was room for all

  void add(CUstream stream, CUcontext context, const StreamAsking& asking) {
    const InContext in(context);
    if (asking.is_done(stream)) return;
    all = all && count < kMost;
    CUevent event = nullptr;
    if (!all || GPUROTA_OWN(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return;
    GPUROTA_OWN(cuEventRecord)(asking.nothing, event, stream);
    marks[count++] = {event, context};
  }

  // False at the deadline (0: none). No event is left either way.
  bool wait(int64_t deadline_ms) {
    const RelaxedCapture relaxed;
    bool in_time = true;
    while (count > 0) {
      --count;
      const InContext in(marks[count].context);
      while (deadline_ms != 0 && in_time && !is_over(marks[count].event)) {
        in_time = now_ms() < deadline_ms;
        if (in_time) sleep_ms(1);
      }
      if (deadline_ms == 0) {
        GPUROTA_OWN(cuEventSynchronize)(relaxed, Outside::ours(), marks[count].event);
      }
      GPUROTA_OWN(cuEventDestroy_v2)(marks[count].event);
    }
    return in_time;
  }
};

void mark_streams(State& s, const StreamAsking& asking, Marks* marks) {
  marks->all = true;
  s.streams.streams.for_each([&](uint64_t key, const KnownStream& stream) {
    marks->add(reinterpret_cast<CUstream>(key), stream.context, asking);
  });
  const uint32_t used = s.contexts.used.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < used; ++i) {
    CUcontext context = s.contexts.entries[i].context.load(std::memory_order_acquire);
    if (context == nullptr || s.contexts.entries[i].slot.load() < 0) continue;
    marks->add(CU_STREAM_LEGACY, context, asking);
  }
}

bool thread_events_done(KnownStreams& known) {
  bool done = true;
  known.events.for_each([&](uint64_t, const KnownEvent& event) {
    if (!done || event.event == nullptr) return;
    const InContext in(event.context);
    done = is_over(event.event);
  });
  return done;
}

}  // namespace

// An event of ours may always be queried: it was recorded in a stream outside of captures.
bool is_over(CUevent event) {
  const RelaxedCapture relaxed;
  return is_done(GPUROTA_OWN(cuEventQuery)(relaxed, Outside::ours(), event));
}

uint64_t key_of_stream(CUstream stream, bool per_thread) {
  const auto number = reinterpret_cast<uintptr_t>(stream);
  if (number > kLastDefaultStream) return number;
  const bool own = stream == CU_STREAM_PER_THREAD || (stream == nullptr && per_thread);
  CUcontext context = current_context();
  const uint64_t thread = own ? static_cast<uint64_t>(sys_gettid()) : 0;
  return mix_key(reinterpret_cast<uint64_t>(context) + mix_key(thread + 1)) | 1;
}

uint64_t key_of_unmarked(CUcontext context) {
  return mix_key(reinterpret_cast<uint64_t>(context)) | 1;
}

uint32_t busy_slots(State& s) {
  KnownStreams& known = s.streams;
  const Lock lock(known.mutex);
  const NothingCaptures nothing(s, lock);
  if (!nothing) return kAllBusy;
  const StreamAsking asking{{}, nothing};
  uint32_t busy = 0;
  ask_known_streams(known, asking, &busy);
  ask_events(known, nothing, &busy);
  ask_default_streams(s, asking, &busy);
  return busy;
}

void mark_thread_stream(State& s) {
  CUcontext context = current_context();
  const Outside outside = Outside::unless_captured(CU_STREAM_PER_THREAD, false);
  if (context == nullptr || !outside) return;
  KnownStreams& known = s.streams;
  Lock lock(known.mutex);
  KnownEvent* entry = known.events.put(key_of_stream(CU_STREAM_PER_THREAD, false));
  if (entry == nullptr) return;
  if (entry->event == nullptr &&
      GPUROTA_OWN(cuEventCreate)(&entry->event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
    return;
  }
  entry->context = context;
  entry->slot = place_of_context(context).slot;
  entry->tid = sys_gettid();
  GPUROTA_OWN(cuEventRecord)(outside, entry->event, CU_STREAM_PER_THREAD);
}

bool wait_for_work(State& s, int64_t deadline_ms) {
  ErrnoGuard errno_guard;
  Marks marks;
  for (;;) {
    {
      Lock contexts(gate_of(s).contexts_mutex);  // no context is destroyed while queried
      const Lock lock(s.streams.mutex);
      const NothingCaptures nothing(s, lock);
      if (!nothing) return false;
      mark_streams(s, {{}, nothing}, &marks);
    }
    if (!marks.wait(deadline_ms)) return false;
    if (marks.all) break;
  }
  // Another thread's own stream cannot be marked: the event of its last submission is queried.
  for (;;) {
    {
      Lock contexts(gate_of(s).contexts_mutex);
      Lock lock(s.streams.mutex);
      if (thread_events_done(s.streams)) return true;
    }
    if (deadline_ms != 0 && now_ms() >= deadline_ms) return false;
    sleep_ms(1);
  }
}

void forget_streams(State& s, CUcontext context) {
  KnownStreams& known = s.streams;
  Lock lock(known.mutex);
  known.streams.remove_if([=](const KnownStream& stream) { return stream.context == context; },
                          [&](uint64_t, const KnownStream& stream) {
                            if (stream.capturing) known.captures.fetch_sub(1);
                          });
  known.events.remove_if([=](const KnownEvent& event) { return event.context == context; },
                         [](uint64_t, const KnownEvent&) {});
}

}  // namespace gpurota::interposer
