#include "interposer/swap/freed.h"

#include "interposer/driver/own_calls.h"
#include "interposer/gate/streams.h"
#include "interposer/memory/pool_figures.h"
#include "interposer/swap/grants.h"

namespace gpurota::interposer {
namespace {

constexpr int64_t kFreedPatienceMs = 1000;  // for memory that others freed in stream order
constexpr int kOthersEndMs = 100;           // for memory that another thread is ending now

}  // namespace

bool keep_freed(Swap& swap, const FreedLater& later) {
  Lock lock(swap.freed_mutex);
  const uint32_t i = swap.freed.take();
  if (i == 0) return false;
  swap.freed[i] = later;
  swap.freed[i].number = swap.freed_last.fetch_add(1) + 1;
  swap.freed_count.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void destroy_event(CUevent event) {
  if (event != nullptr) GPUROTA_OWN(cuEventDestroy_v2)(event);
}

void swap_end_memory(State& s, uint64_t address, int slot) {
  SwapFreed freed{};
  const RelaxedCapture relaxed;
  swap_of(s).devices[slot].space.free(address, &freed);
  swap_of(s).given_back.fetch_add(1);  // also for memory that the mover still has to end and report
  swap_shrink(slot, freed.released, freed.dropped, freed.wired, freed.hosted);
}

void swap_end_memory(State& s, const FreedLater& later) {
  swap_end_memory(s, later.address, later.slot);
  note_ending(s, later.pool, -static_cast<int64_t>(later.size));
  note_ended(s, later.pool, later.size);
}

// A new stream may get the handle of the stream that ends, and does not wait for the work of the
// ended stream.
void swap_stream_gone(State& s, uint64_t key) {
  Swap& swap = swap_of(s);
  if (swap.freed_count.load(std::memory_order_relaxed) == 0) return;
  Lock lock(swap.freed_mutex);
  for (uint32_t i = 1; i < swap.freed.end(); ++i) {
    if (swap.freed.is_used(i) && swap.freed[i].stream == key) swap.freed[i].stream = 0;
  }
}

namespace {

// Marks that this thread is ending freed memory, which is in no table any more but has not ended
// yet.
class EndsUnderWay {
 public:
  explicit EndsUnderWay(Swap& swap) : swap_(swap) { swap_.ends_under_way.fetch_add(1); }
  ~EndsUnderWay() { swap_.ends_under_way.fetch_sub(1); }
  EndsUnderWay(const EndsUnderWay&) = delete;
  EndsUnderWay& operator=(const EndsUnderWay&) = delete;

 private:
  Swap& swap_;
};

}  // namespace

bool swap_end_freed(State& s, uint64_t done) {
  if (swap_of(s).freed_count.load(std::memory_order_relaxed) == 0) return false;
  const EndsUnderWay ends(swap_of(s));
  FreedLater later{};
  bool any = false;
  // The event is destroyed under the lock: a thread that destroys its context takes the lock first
  // (swap_forget_events).
  const auto is_over = [&](FreedLater& candidate) {
    if (candidate.number > done) return false;
    destroy_event(candidate.event);
    return true;
  };
  while (take_freed(swap_of(s), is_over, &later)) {
    swap_end_memory(s, later);
    any = true;
  }
  return any;
}

// Ends memory if all work that is in flight now is over by the deadline.
static bool end_freed_by(State& s, int64_t deadline_ms) {
  if (swap_of(s).freed_count.load(std::memory_order_relaxed) == 0) return false;
  const uint64_t before = swap_of(s).freed_last.load();
  const bool drained = swap_of(s).drained.load(std::memory_order_acquire) != 0;
  if (!drained && !wait_for_work(s, deadline_ms)) return false;
  return swap_end_freed(s, before);
}

bool swap_end_freed_if_idle(State& s) {
  const bool any = end_freed_by(s, now_ms());
  // Memory that another thread has taken out of the table is about to be given back, too.
  ErrnoGuard guard;
  for (int i = 0; i < kOthersEndMs && swap_of(s).ends_under_way.load() != 0; ++i) sleep_ms(1);
  return any;
}

bool swap_end_freed_soon(State& s) { return end_freed_by(s, now_ms() + kFreedPatienceMs); }

void swap_forget_events(State& s) {
  Swap& swap = swap_of(s);
  if (swap.freed_count.load(std::memory_order_relaxed) == 0) return;
  Lock lock(swap.freed_mutex);
  for (uint32_t i = 1; i < swap.freed.end(); ++i) {
    FreedLater& later = swap.freed[i];
    if (!swap.freed.is_used(i) || later.event == nullptr) continue;
    destroy_event(later.event);
    later.event = nullptr;
    later.stream = 0;
    later.number = swap.freed_last.fetch_add(1) + 1;
  }
}

bool wait_for_freed(State& s, uint64_t before) {
  ErrnoGuard guard;
  const int64_t deadline = now_ms() + kFreedPatienceMs;
  for (;;) {
    swap_end_freed_soon(s);
    const bool more = swap_of(s).freed_count.load() != 0 || swap_of(s).ends_under_way.load() != 0;
    if (swap_of(s).given_back.load() != before) return true;
    if (!more || now_ms() >= deadline) return false;
    sleep_ms(1);
  }
}

}  // namespace gpurota::interposer
