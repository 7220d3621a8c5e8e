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

uint64_t current_key() { return reinterpret_cast<uintptr_t>(current_context()); }

// Whether the stream and the legacy default stream wait for each other. The stream does not
// capture.
bool is_blocking(CUstream stream, bool per_thread) {
  if (is_legacy_stream(stream, per_thread)) return true;
  const Outside outside = Outside::unless_captured(stream, per_thread);
  const CUstream asked = stream == nullptr ? CU_STREAM_PER_THREAD : stream;
  unsigned int flags = CU_STREAM_NON_BLOCKING;
  if (outside) GPUROTA_OWN(cuStreamGetFlags)(outside, asked, &flags);
  return (flags & CU_STREAM_NON_BLOCKING) == 0;
}

// Of a stream of the current context that does not capture.
StreamTraits traits_of(CUstream stream, bool per_thread) {
  return {current_key(), is_blocking(stream, per_thread)};
}

void show_burst(State& s, bool begun) {
  if (begun) show(s, &gpurota_page_use::bursts, latency_of(s).bursts.bursts());
}

}  // namespace

uint64_t before_submission(State& s, CUstream stream, bool per_thread, bool overlaps) {
  const uint32_t roles = s.roles.load(std::memory_order_acquire);
  if ((roles & (kMarksBursts | kHoldsBack)) == 0) return 0;
  Latency& latency = latency_of(s);
  if ((roles & kHoldsBack) != 0) {
    const auto word = [&](uint32_t index) {
      return s.bursts.other(index)->load(std::memory_order_acquire);
    };
    const bool passes = latency.holds.passes(s.bursts.held_for.load(), word);
    if (!passes && !is_capturing(stream, per_thread)) hold_back(s, latency.holds);
    latency.in_flight.submitting(key_of_stream(stream, per_thread), stream, per_thread, overlaps,
                                 latency.holds.busy_us() + kActiveUs);
  }
  if ((roles & kMarksBursts) == 0 || is_capturing(stream, per_thread)) return 0;
  const uint64_t key = key_of_stream(stream, per_thread);
  show_burst(s, latency.bursts.submit(s.bursts.own(), key, coarse_us(),
                                      [=] { return traits_of(stream, per_thread); }));
  return key;
}

void after_submission(State& s, uint64_t key) {
  show_burst(s, latency_of(s).bursts.submit_again(s.bursts.own(), key, coarse_us()));
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
  latency_of(s).bursts.all_ended(s.bursts.own(), marks, coarse_us());
}

void note_end(State& s, const StreamMark& mark) {
  ErrnoGuard guard;
  latency_of(s).bursts.ended(s.bursts.own(), mark, coarse_us());
}

void forget_stream_work(State& s, CUstream stream) {
  const auto key = reinterpret_cast<uintptr_t>(stream);
  if (key <= kLastDefaultStream) return;
  if (s.bursts.memory.load() == nullptr) return;
  ErrnoGuard guard;
  latency_of(s).bursts.forget(s.bursts.own(), key, coarse_us());
  latency_of(s).in_flight.forget_stream(key);
}

void forget_context_work(State& s, CUcontext context) {
  latency_of(s).in_flight.forget_context(context);
  if (s.bursts.memory.load() == nullptr) return;
  ErrnoGuard guard;
  latency_of(s).bursts.forget_context(s.bursts.own(), reinterpret_cast<uintptr_t>(context),
                                      coarse_us());
}

}  // namespace gpurota::interposer
