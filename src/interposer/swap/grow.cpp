#include "interposer/swap/grow.h"

#include "interposer/account/link_calls.h"
#include "interposer/os/debug.h"
#include "interposer/swap/freed.h"
#include "interposer/swap/grants.h"

namespace gpurota::interposer {
namespace {

// The time between two checks whether the daemon has been away too long.
constexpr int64_t kAbsenceCheckMs = 100;
constexpr int64_t kMoverMs = 10000;
constexpr int64_t kEndsMs = 200;  // with many threads, some thread may always be ending memory

// Takes a free entry. If all are in use, waits until one is free.
SwapAsk* take_ask(Swap& swap) {
  for (;;) {
    for (SwapAsk& ask : swap.asks) {
      uint32_t free = kAskFree;
      if (ask.state.compare_exchange_strong(free, kAskTaken)) return &ask;
    }
    sleep_ms(1);
  }
}

bool refused_to_host(const SwapAsk& ask) { return ask.status == GPUROTA_REFUSED_TO_HOST; }

Answer wait_for_answer(State& s, SwapAsk* ask) {
  for (;;) {
    const timespec wait = to_timespec(kAbsenceCheckMs);
    futex_wait(&ask->state, kAskWaits, &wait);
    if (ask->state.load(std::memory_order_acquire) == kAskAnswered) {
      return ask->status == GPUROTA_OK ? Answer::kYes : Answer::kNo;
    }
    if (!swap_gone(s)) continue;
    Lock lock(swap_of(s).books_mutex);
    if (ask->state.load() != kAskWaits) continue;
    ask->state.store(kAskTaken);
    return why_not(s);
  }
}

// Waits at most kEndsMs until other threads have ended the memory that they are ending. Then waits
// at most kMoverMs until the mover has ended memory that was freed during a move, and the daemon
// has been told.
void wait_for_ends(const Swap& swap, int slot) {
  const int64_t deadline = now_ms() + kEndsMs;
  while (swap.ends_under_way.load() != 0 && now_ms() < deadline) sleep_ms(1);
  const int64_t moved = now_ms() + kMoverMs;
  while (swap.devices[slot].space.ending_bytes() != 0 && now_ms() < moved) sleep_ms(1);
}

Answer ask(State& s, int slot, gpurota_swap_grow_kind kind, uint64_t bytes, uint64_t* granted) {
  SwapAsk* ask = take_ask(swap_of(s));
  {
    Lock lock(swap_of(s).books_mutex);
    ask->seq = ++swap_of(s).ask_seq;
    ask->slot = static_cast<uint32_t>(slot);
    ask->kind = kind;
    ask->bytes = bytes;
    ask->granted = 0;
    ask->state.store(kAskWaits);
    swap_send_ask(swap_of(s),
                  *ask);  // a request that cannot be sent is sent after the next SWAP_HERE
  }
  const Answer answer = wait_for_answer(s, ask);
  const bool of_use = answer == Answer::kYes || (answer == Answer::kNo && refused_to_host(*ask));
  if (granted != nullptr) *granted = of_use ? ask->granted : 0;
  if (answer != Answer::kYes) {
    GPUROTA_DEBUG("slot %d: %llu bytes are refused (status %u)", slot,
                  static_cast<unsigned long long>(bytes), ask->status);
  }
  ask->state.store(kAskFree, std::memory_order_release);
  s.mirror(slot);
  return answer;
}

}  // namespace

// A refusal is final only if nothing was given back since before the request. Memory that was freed
// in stream order counts until a thread ends it, and memory that was freed while it moved counts
// until the mover ends it.
Answer swap_grow(int slot, gpurota_swap_grow_kind kind, uint64_t bytes, uint64_t* granted) {
  State& s = state();
  ErrnoGuard guard;
  for (int round = 1;; ++round) {
    const uint64_t before = swap_of(s).given_back.load();
    const Answer answer = ask(s, slot, kind, bytes, granted);
    if (answer != Answer::kNo || round == kTriesForRoom) return answer;
    swap_end_freed_soon(s);
    wait_for_ends(swap_of(s), slot);
    if (swap_of(s).given_back.load() == before) return answer;
  }
}

}  // namespace gpurota::interposer
