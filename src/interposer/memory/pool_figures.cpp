#include "interposer/memory/pool_figures.h"

#include "interposer/account/swap_table.h"
#include "interposer/memory/pool_charge.h"

namespace gpurota::interposer {
namespace {

// Pools grow in units of 32 MiB (tests/driver/pool_check.cpp).
constexpr int64_t kUnit = int64_t{32} << 20;

Pool& pool_of(State& s, uint16_t number) { return memory_of(s).pools.entries[number - 1]; }

int64_t used_by(const Pool& pool) {
  const int64_t used = pool.live.load() - pool.ending.load();
  return used > 0 ? used : 0;
}

int64_t held_by(const Pool& pool) { return (pool.live.load() + kUnit - 1) / kUnit * kUnit; }

void raise(std::atomic<int64_t>* mark, int64_t value) {
  int64_t known = mark->load();
  while (known < value && !mark->compare_exchange_weak(known, value)) {
  }
}

Pool* moving_pool(State& s, CUmemoryPool handle) {
  bool foreign = false;
  Pool* pool = known_pool(s, handle, &foreign);
  return pool != nullptr && !pool->stays ? pool : nullptr;
}

}  // namespace

uint16_t begin_giving(State& s, Pool& pool, CUmemoryPool handle, uint64_t size) {
  const Inside inside(pool);
  if (pool.destroyed.load() || pool.pool.load() != handle) return 0;
  pool.live.fetch_add(static_cast<int64_t>(size));
  return static_cast<uint16_t>(&pool - memory_of(s).pools.entries + 1);
}

void note_given(State& s, uint16_t number) {
  if (number == 0) return;
  Pool& pool = pool_of(s, number);
  raise(&pool.used_high, used_by(pool));
  raise(&pool.held_high, held_by(pool));
}

void note_ending(State& s, uint16_t number, int64_t size) {
  if (number != 0) pool_of(s, number).ending.fetch_add(size);
}

void note_ended(State& s, uint16_t number, uint64_t size) {
  if (number == 0) return;
  Pool& pool = pool_of(s, number);
  pool.live.fetch_sub(static_cast<int64_t>(size));
  remove_if_gone(pool);
}

bool read_moving_pool(State& s, CUmemoryPool handle, CUmemPool_attribute attribute,
                      uint64_t* value) {
  const Pool* pool = moving_pool(s, handle);
  if (pool == nullptr) return false;
  switch (attribute) {
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      *value = static_cast<uint64_t>(used_by(*pool));
      return true;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      *value = static_cast<uint64_t>(pool->used_high.load());
      return true;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      g_swap.end_freed_if_idle(s);
      *value = static_cast<uint64_t>(held_by(*pool));
      return true;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      *value = static_cast<uint64_t>(pool->held_high.load());
      return true;
    default:
      return false;
  }
}

void reset_moving_pool(State& s, CUmemoryPool handle, CUmemPool_attribute attribute) {
  Pool* pool = moving_pool(s, handle);
  if (pool == nullptr) return;
  if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) pool->used_high.store(used_by(*pool));
  if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) pool->held_high.store(held_by(*pool));
}

}  // namespace gpurota::interposer
