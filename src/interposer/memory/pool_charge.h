// The pools that are known, and their charge: what the driver says they have *reserved*.
//
// Used by pools.cpp (stream-ordered allocation) and graph_memory.cpp: what the driver keeps for the
// graphs of a device is a pool like others here, under a handle of our own that no driver gives
// out. Any thread.
#pragma once

#include "interposer/memory/memory_part.h"

#include <cstdint>

namespace gpurota::interposer {

// In Pool::pool: destroyed, and not all of its memory is freed.
inline const CUmemoryPool kGone = reinterpret_cast<CUmemoryPool>(UINTPTR_MAX);

Pool* find_pool(State& s, CUmemoryPool handle);
Pool* add_pool(State& s, CUmemoryPool handle, int slot, bool tracked, bool stays = false);
// find_pool(), and else looks whether it is one that the driver has by itself. `foreign`: it is, of
// a GPU that is not of the lease. `ends`: it is being destroyed at this moment, and not to be used.
Pool* known_pool(State& s, CUmemoryPool handle, bool* foreign, bool* ends = nullptr);
// The memory of graphs on a device, nullptr if the device is not of the lease.
Pool* graph_pool(State& s, CUdevice device);

// The most by which a pool grows for `size` bytes.
int64_t growth_for(State& s, const Pool& pool, uint64_t size);
// Whether the lease could give `bytes`, the headroom included, as the daemon last showed it.
bool lease_may_have(State& s, int slot, int64_t bytes);
// Whether the pool has that much that is reserved and not in use, and is not known to be in pieces.
bool may_serve(Pool& pool, uint64_t size);
// Remembers that it could not.
void was_in_pieces(Pool& pool, uint64_t size);

// While it lives, the pool may grow for the calling thread: what it grows by is charged by the
// settlement of that thread and by nobody else, and memory of graphs is not let go.
class Inside {
 public:
  explicit Inside(Pool& pool) : pool_(pool) { pool_.inside.fetch_add(1); }
  ~Inside() { pool_.inside.fetch_sub(1); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  Pool& pool_;
};

// The headroom after `taken` was put back and the pool's growth charged; `own`: by a thread that is
// inside.
struct Charged {
  int64_t grown, headroom;
};
Charged charge_growth(State& s, Pool& pool, int64_t taken, bool own);
// Whether all that this thread has made the pool grow by is charged, as in most calls it is;
// without the lock.
bool is_charged(const Pool& pool);

// Lets one pool go of what it does not need.
void trim(Pool& pool);

// Reads what the pools of a slot have reserved and credits what they have let go.
void settle_pools(int slot);
// Near the limit: lets the pools release what they keep for later, then settle_pools().
void reclaim_pools(int slot);

// A tracked allocation was freed.
void credit_pool_allocation(State& s, const Allocation& allocation);

// To be called before a pool is destroyed. Returns when no thread uses its handle any more, or
// after a second.
void begin_destroying(Pool& pool);
// Credits its charge if it is gone with all its memory. For whoever may have been the last at it:
// one that destroys it, frees of its memory, or was inside.
void remove_if_gone(Pool& pool);

}  // namespace gpurota::interposer
