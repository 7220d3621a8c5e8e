// Stream-ordered allocation: pools are charged by what they have *reserved*.
//
// A pool keeps freed memory, grows in units of its own and shrinks at synchronisation points, so the
// bytes of single allocations say little about the GPU's loss. Around each allocation that could grow
// the pool, the most it can grow by is taken from the headroom, and the pool's reserved bytes are read
// afterwards. docs/design/interposer.md says how far a pool can be ahead of its charge, and when.
#pragma once

#include "interposer/state.h"

#include <cstdint>

namespace gpurota::interposer {

// Reads what the pools of a slot have reserved and credits what they have let go.
void settle_pools(int slot);

// Near the limit: lets the pools release what they keep for later, then settle_pools().
void reclaim_pools(int slot);

// A tracked allocation was freed.
void credit_pool_allocation(State& s, const Allocation& allocation);

}  // namespace gpurota::interposer
