#include "interposer/ledger.h"

#include "interposer/debug.h"
#include "interposer/link.h"
#include "interposer/pools.h"

namespace gpurota::interposer {

bool take(State& s, int slot, int64_t bytes) {
  std::atomic<int64_t>& headroom = s.slots[slot].headroom;
  int64_t now = headroom.load(std::memory_order_relaxed);
  while (now >= bytes) {
    if (headroom.compare_exchange_weak(now, now - bytes, std::memory_order_relaxed)) return true;
  }
  return false;
}

bool reserve(int slot, int64_t bytes) {
  State& s = state();
  if (take(s, slot, bytes)) return true;
  if (grow(slot, GPUROTA_GROW_MEMORY, static_cast<uint64_t>(bytes)) == Answer::kYes) return true;
  if (!reclaim_pools(slot)) return false;
  return take(s, slot, bytes) ||
         grow(slot, GPUROTA_GROW_MEMORY, static_cast<uint64_t>(bytes)) == Answer::kYes;
}

void put(int slot, int64_t bytes) {
  State& s = state();
  const int64_t now = s.slots[slot].headroom.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (now > kExcess) give_back_excess(slot);
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
