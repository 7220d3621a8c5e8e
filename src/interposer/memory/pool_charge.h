// The known pools, and their charge: what the driver says they have *reserved*.
//
// Used by pools.cpp (stream-ordered allocation) and graph_memory.cpp. The memory that the driver
// keeps for the graphs of a device is a pool here too, under a handle of our own that no driver
// gives out. Any thread.
#pragma once

#include "interposer/memory/memory_part.h"

#include <cstdint>

namespace gpurota::interposer {

// The value of Pool::pool for a pool that was destroyed, and of which some memory is not freed yet.
inline const CUmemoryPool kGone = reinterpret_cast<CUmemoryPool>(UINTPTR_MAX);

Pool* find_pool(State& s, CUmemoryPool handle);
Pool* add_pool(State& s, CUmemoryPool handle, int slot, bool tracked, bool stays = false);
// Like find_pool(), but also finds a pool that the driver made by itself. `foreign`: such a pool,
// of a GPU that is not of the lease. `ends`: the pool is being destroyed at this moment, and must
// not be used.
Pool* known_pool(State& s, CUmemoryPool handle, bool* foreign, bool* ends = nullptr);
// The memory of graphs on a device, nullptr if the device is not of the lease.
Pool* graph_pool(State& s, CUdevice device);

// The most by which a pool grows for `size` bytes.
int64_t growth_for(State& s, const Pool& pool, uint64_t size);
// Whether the headroom and the memory that the daemon last showed as available are at least
// `bytes`.
bool lease_may_have(State& s, int slot, int64_t bytes);
// Whether the pool has `size` bytes that are reserved and not in use, and is not known to be
// fragmented.
bool may_serve(Pool& pool, uint64_t size);
// Records that the pool could not serve `size` bytes.
void was_in_pieces(Pool& pool, uint64_t size);

// While an object lives, the calling thread is inside the pool: the pool may grow for this thread.
// While any thread is inside, only threads that are inside charge the growth of the pool, each when
// it settles its own call. If the pool is the memory of graphs, trim() does not begin to release
// it.
class Inside {
 public:
  explicit Inside(Pool& pool) : pool_(pool) { pool_.inside.fetch_add(1); }
  ~Inside() { pool_.inside.fetch_sub(1); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  Pool& pool_;
};

// The growth, and the headroom after `taken` was put back and the growth charged. `own`: the
// calling thread is inside.
struct Charged {
  int64_t grown, headroom;
};
Charged charge_growth(State& s, Pool& pool, int64_t taken, bool own);
// Whether all growth that this thread caused is charged, as it is in most calls. Takes no lock.
bool is_charged(const Pool& pool);

// Makes one pool release what it does not need.
void trim(Pool& pool);

// Reads what the pools of a slot have reserved, and credits what they have released.
void settle_pools(int slot);
// Near the limit: makes the pools release what they keep for later, then calls settle_pools().
void reclaim_pools(int slot);

// A tracked allocation was freed.
void credit_pool_allocation(State& s, const Allocation& allocation);

// To be called before a pool is destroyed. Returns when no thread uses its handle any more, or
// after a second.
void begin_destroying(Pool& pool);
// Credits a pool's charge if the pool and all its memory are gone. A thread calls this after it has
// destroyed the pool, freed memory of the pool, or left the inside (class Inside): each of these
// threads may be the last to use the pool.
void remove_if_gone(Pool& pool);

}  // namespace gpurota::interposer
