#include "interposer/account/headroom.h"

namespace gpurota::interposer {

void credit_headroom(State& s, int slot, int64_t bytes) {
  Slot& ledger = s.slots[slot];
  ledger.headroom.fetch_add(bytes);
  if (bytes > 0 && ledger.asking.load() != 0) ledger.freed.fetch_add(1);
}

int64_t take_above(State& s, int slot, int64_t keep) {
  std::atomic<int64_t>& headroom = s.slots[slot].headroom;
  int64_t now = headroom.load(std::memory_order_relaxed);
  while (now > keep) {
    if (!headroom.compare_exchange_weak(now, keep, std::memory_order_relaxed)) continue;
    s.slots[slot].granted.fetch_sub(now - keep, std::memory_order_relaxed);
    return now - keep;
  }
  return 0;
}

int64_t surrender_some(State& s, int slot, int64_t most) {
  std::atomic<int64_t>& headroom = s.slots[slot].headroom;
  int64_t now = headroom.load(std::memory_order_relaxed);
  while (now > 0) {
    const int64_t some = now < most ? now : most;
    if (!headroom.compare_exchange_weak(now, now - some, std::memory_order_relaxed)) continue;
    s.slots[slot].granted.fetch_sub(some, std::memory_order_relaxed);
    return some;
  }
  return 0;
}

int64_t surrender(State& s, int slot) { return take_above(s, slot, 0); }

void receive_grant(State& s, int slot, int64_t granted, int64_t used) {
  s.slots[slot].granted.fetch_add(granted, std::memory_order_relaxed);
  s.slots[slot].headroom.fetch_add(granted - used, std::memory_order_relaxed);
}

}  // namespace gpurota::interposer
