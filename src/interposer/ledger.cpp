#include "interposer/ledger.h"

#include "interposer/debug.h"
#include "interposer/link.h"
#include "interposer/pools.h"
#include "interposer/swap/grants.h"

namespace gpurota::interposer {
namespace {

constexpr int kPatience = 3;  // ms

}  // namespace

bool take(State& s, int slot, int64_t bytes) {
  std::atomic<int64_t>& headroom = s.slots[slot].headroom;
  int64_t now = headroom.load(std::memory_order_relaxed);
  while (now >= bytes) {
    if (headroom.compare_exchange_weak(now, now - bytes, std::memory_order_relaxed)) return true;
  }
  return false;
}

// The page shows the charge before the driver takes the memory: a look of the daemon in between must
// not find more memory than is said to be in use.
bool reserve(int slot, int64_t bytes) {
  State& s = state();
  bool reserved = take(s, slot, bytes);
  for (int i = 0; i < 2 && !reserved; ++i) {
    const auto need = static_cast<uint64_t>(bytes);
    reserved = grow(slot, GPUROTA_GROW_MEMORY, need) == Answer::kYes;
    if (reserved || !reclaim_pools(slot)) break;
    reserved = take(s, slot, bytes);
  }
  // What other threads have in flight is more than they will keep: a refusal waits for that, shortly.
  bool waited = false;
  for (int i = 0; i < kPatience && !reserved && s.slots[slot].inside.load() > 0; ++i) {
    ErrnoGuard guard;
    sleep_ms(1);
    waited = true;
    reserved = take(s, slot, bytes);
  }
  if (waited && !reserved) {
    reserved = grow(slot, GPUROTA_GROW_MEMORY, static_cast<uint64_t>(bytes)) == Answer::kYes;
  }
  if (reserved) s.mirror(slot);
  return reserved;
}

bool above_limit(const State& s, int slot) {
  const gpurota_page* page = s.page.load(std::memory_order_acquire);
  if (page == nullptr) return false;
  const uint64_t limit = __atomic_load_n(&page->grant[slot].limit_bytes, __ATOMIC_RELAXED);
  const int64_t granted = s.slots[slot].granted.load(std::memory_order_relaxed);
  return limit != 0 && granted > 0 && static_cast<uint64_t>(granted) > limit;
}

void put(int slot, int64_t bytes) {
  State& s = state();
  const int64_t now = s.slots[slot].headroom.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  const bool keeps = !swapping() && !above_limit(s, slot);
  if (now > (keeps ? kExcess : 0)) give_back_excess(slot);
  s.mirror(slot);
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

int64_t surrender(State& s, int slot) { return take_above(s, slot, 0); }

void receive_grant(State& s, int slot, int64_t granted, int64_t used) {
  s.slots[slot].granted.fetch_add(granted, std::memory_order_relaxed);
  s.slots[slot].headroom.fetch_add(granted - used, std::memory_order_relaxed);
}

CUresult refuse(int slot, uint64_t bytes) {
  State& s = state();
  s.slots[slot].refusals.fetch_add(1, std::memory_order_relaxed);
  s.mirror(slot);
  GPUROTA_DEBUG("slot %d: an allocation of %llu bytes is refused: the lease's limit", slot,
                static_cast<unsigned long long>(bytes));
  return CUDA_ERROR_OUT_OF_MEMORY;
}

}  // namespace gpurota::interposer
