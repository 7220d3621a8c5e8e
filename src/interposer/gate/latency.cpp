#include "interposer/gate/latency.h"

#include "interposer/account/device.h"
#include "interposer/driver/own_calls.h"
#include "interposer/gate/gate_part.h"
#include "interposer/gate/streams.h"

namespace gpurota::interposer {
namespace {

// While an interactive lease had work within this time, what is in flight is bounded.
constexpr int64_t kActiveUs = 1'000'000;

Latency& latency_of(State& s) { return gate_of(s).latency; }

// The word by which this process says whether it has work; nullptr: it has none.
std::atomic<uint32_t>* own_word(const State& s) {
  if ((s.roles.load(std::memory_order_acquire) & kTakesWindows) != 0) {
    return reinterpret_cast<std::atomic<uint32_t>*>(&s.page.load(std::memory_order_acquire)->work);
  }
  return s.bursts.memory.load(std::memory_order_acquire) != nullptr ? s.bursts.own() : nullptr;
}

void show(const State& s, uint64_t gpurota_page_use::*field, uint64_t value) {
  gpurota_page* page = s.page.load(std::memory_order_acquire);
  if (page != nullptr) __atomic_store_n(&(page->use[0].*field), value, __ATOMIC_RELAXED);
}

void hold_back(State& s, Holds& holds) {
  ErrnoGuard guard;
  const auto word = [&](uint32_t index) { return s.bursts.other(index)->load(); };
  const auto budget = [&] { return s.bursts.budget.load(std::memory_order_relaxed); };
  holds.begin(budget(), now_us());
  for (;;) {
    const HoldStep step = holds.next(s.bursts.held_for.load(), budget(), now_us(), word);
    if (step.kind == HoldStep::Kind::kPass) break;
    futex_wait_shared(s.bursts.other(step.index), step.seen, step.timeout_us);
  }
  holds.end(budget(), now_us());
  show(s, &gpurota_page_use::held_us, holds.held_us());
}

// Learns the end of the stream's work for a thread that is about to wait for a window: the program
// cannot ask for that end meanwhile. The stream's context is current. False: the window has opened
// before that end.
bool wait_for_end(CUstream stream, bool per_thread, const std::atomic<uint32_t>& window,
                  const Windows& windows) {
  constexpr timespec kNap{0, 30'000};
  const Outside outside = Outside::unless_captured(stream, per_thread);
  CUevent event = nullptr;
  if (!outside || GPUROTA_OWN(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
    return true;  // the stream counts as ended when it has been silent for a while
  }
  bool opened = false;
  noting_end(stream, per_thread, [&] {
    if (GPUROTA_OWN(cuEventRecord)(outside, event, meant_stream(stream, per_thread)) !=
        CUDA_SUCCESS) {
      return CUDA_ERROR_NOT_READY;
    }
    while (!is_over(event)) {
      opened = windows.passes(window.load(std::memory_order_acquire));
      if (opened) return CUDA_ERROR_NOT_READY;
      ::syscall(SYS_nanosleep, &kNap, nullptr);
    }
    return CUDA_SUCCESS;
  });
  GPUROTA_OWN(cuEventDestroy_v2)(event);
  return !opened;
}

// The page may be that of a new connection, so the count is kept here, too.
void show_waiting(const std::atomic<uint32_t>& waiting, uint32_t& shown) {
  uint32_t count = 0;
  do {
    count = waiting.load();
    __atomic_store_n(&shown, count, __ATOMIC_SEQ_CST);
  } while (waiting.load() != count);
}

void wait_for_window(State& s, Windows& windows, CUstream stream, bool per_thread) {
  ErrnoGuard guard;
  gpurota_page* const page = s.page.load(std::memory_order_acquire);
  const auto& word = *reinterpret_cast<const std::atomic<uint32_t>*>(&page->grant[0].window);
  const int64_t begun = now_us();
  std::atomic<uint32_t>& waiting = latency_of(s).waiting;
  waiting.fetch_add(1);
  show_waiting(waiting, page->waiting);
  bool ended = false;
  for (;;) {
    const uint32_t seen = word.load(std::memory_order_acquire);
    const int64_t left = windows.left(seen, now_us());
    if (left <= 0) break;
    if (ended) {
      futex_wait_shared(&word, seen, left < Bursts::kSilentUs ? left : Bursts::kSilentUs);
      if (std::atomic<uint32_t>* const own = own_word(s)) {
        latency_of(s).bursts.check(own, coarse_us());
      }
    } else {
      ended = wait_for_end(stream, per_thread, word, windows);
    }
  }
  waiting.fetch_sub(1);
  show_waiting(waiting, page->waiting);
  __atomic_fetch_add(&page->waited_us, static_cast<uint64_t>(now_us() - begun), __ATOMIC_RELAXED);
}

uint64_t current_key() { return reinterpret_cast<uintptr_t>(current_context()); }

// Whether the stream and the legacy default stream wait for each other. The stream does not
// capture.
bool is_blocking(CUstream stream, bool per_thread) {
  if (is_legacy_stream(stream, per_thread)) return true;
  const Outside outside = Outside::unless_captured(stream, per_thread);
  unsigned int flags = CU_STREAM_NON_BLOCKING;
  if (outside) GPUROTA_OWN(cuStreamGetFlags)(outside, meant_stream(stream, per_thread), &flags);
  return (flags & CU_STREAM_NON_BLOCKING) == 0;
}

// The traits of a stream of the current context. The stream must not be capturing.
StreamTraits traits_of(CUstream stream, bool per_thread) {
  return {current_key(), is_blocking(stream, per_thread)};
}

void show_burst(State& s, bool begun) {
  if (begun) show(s, &gpurota_page_use::bursts, latency_of(s).bursts.bursts());
}

}  // namespace

void wait_for_others(State& s, CUstream stream, bool per_thread, bool overlaps) {
  const uint32_t roles = s.roles.load(std::memory_order_acquire);
  if ((roles & (kHoldsBack | kTakesWindows)) == 0) return;
  Latency& latency = latency_of(s);
  int64_t busy_us = 0;
  if ((roles & kHoldsBack) != 0) {
    const auto word = [&](uint32_t index) {
      return s.bursts.other(index)->load(std::memory_order_acquire);
    };
    const bool passes = latency.holds.passes(s.bursts.held_for.load(), word);
    if (!passes && !is_capturing(stream, per_thread)) hold_back(s, latency.holds);
    busy_us = latency.holds.busy_us();
  }
  if ((roles & kTakesWindows) != 0) {
    const gpurota_page* const page = s.page.load(std::memory_order_acquire);
    const uint32_t word = __atomic_load_n(&page->grant[0].window, __ATOMIC_ACQUIRE);
    if (!latency.windows.passes(word) && !is_capturing(stream, per_thread)) {
      wait_for_window(s, latency.windows, stream, per_thread);
    }
    const int64_t waited_us = latency.windows.waited_us();
    if (waited_us > busy_us) busy_us = waited_us;
  }
  const uint32_t times = (roles & kHoldsBack) != 0 ? 1 : InFlight::kInWindows;
  latency.in_flight.submitting(key_of_stream(stream, per_thread), stream, per_thread, overlaps,
                               times, busy_us + kActiveUs);
}

uint64_t before_submission(State& s, CUstream stream, bool per_thread) {
  if ((s.roles.load(std::memory_order_acquire) & kSaysWork) == 0) return 0;
  std::atomic<uint32_t>* const word = own_word(s);
  if (word == nullptr || is_capturing(stream, per_thread)) return 0;
  const uint64_t key = key_of_stream(stream, per_thread);
  show_burst(s, latency_of(s).bursts.submit(word, key, coarse_us(),
                                            [=] { return traits_of(stream, per_thread); }));
  return key;
}

void after_submission(State& s, uint64_t key) {
  std::atomic<uint32_t>* const word = own_word(s);
  if (word != nullptr) show_burst(s, latency_of(s).bursts.submit_again(word, key, coarse_us()));
}

void note_event(State& s, CUevent event, CUstream stream, bool per_thread) {
  if (event == nullptr || is_capturing(stream, per_thread)) return;
  latency_of(s).bursts.record(reinterpret_cast<uintptr_t>(event),
                              key_of_stream(stream, per_thread));
}

void note_wait(State& s, CUevent event, CUstream stream, bool per_thread) {
  StreamMark before{};
  if (!mark_event(s, event, &before) || is_capturing(stream, per_thread)) return;
  ErrnoGuard guard;
  latency_of(s).bursts.join(key_of_stream(stream, per_thread), before,
                            [=] { return traits_of(stream, per_thread); });
}

StreamMark mark_stream(State& s, CUstream stream, bool per_thread) {
  return latency_of(s).bursts.mark(key_of_stream(stream, per_thread));
}

bool mark_event(State& s, CUevent event, StreamMark* out) {
  return event != nullptr &&
         latency_of(s).bursts.find_event(reinterpret_cast<uintptr_t>(event), out);
}

Bursts::AllMarks mark_streams(State& s, Bursts::Which which, CUcontext context) {
  Bursts::AllMarks marks;
  const uint64_t key = context != nullptr ? reinterpret_cast<uintptr_t>(context) : current_key();
  latency_of(s).bursts.mark_all(which, key, &marks);
  return marks;
}

void note_end_of_all(State& s, const Bursts::AllMarks& marks) {
  ErrnoGuard guard;
  std::atomic<uint32_t>* const word = own_word(s);
  if (word != nullptr) latency_of(s).bursts.all_ended(word, marks, coarse_us());
}

void note_end(State& s, const StreamMark& mark) {
  ErrnoGuard guard;
  std::atomic<uint32_t>* const word = own_word(s);
  if (word != nullptr) latency_of(s).bursts.ended(word, mark, coarse_us());
}

void forget_stream_work(State& s, CUstream stream) {
  const auto key = reinterpret_cast<uintptr_t>(stream);
  std::atomic<uint32_t>* const word = own_word(s);
  if (key <= kLastDefaultStream || word == nullptr) return;
  ErrnoGuard guard;
  latency_of(s).bursts.forget(word, key, coarse_us());
  latency_of(s).in_flight.forget_stream(key);
}

void forget_context_work(State& s, CUcontext context) {
  latency_of(s).in_flight.forget_context(context);
  std::atomic<uint32_t>* const word = own_word(s);
  if (word == nullptr) return;
  ErrnoGuard guard;
  latency_of(s).bursts.forget_context(word, reinterpret_cast<uintptr_t>(context), coarse_us());
}

}  // namespace gpurota::interposer
