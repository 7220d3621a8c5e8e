// What the pools of a swap lease have given, in the driver's terms (cuMemPoolGetAttribute). The
// memory moves, so it is no pool's to the driver; the program is told what a driver would tell it,
// but that nothing is kept for later.
//
// Any thread, no locks. A pool is named by its number, as in Allocation::pool; 0 is none, and
// nothing is counted.
#pragma once

#include "interposer/memory/memory_part.h"

#include <cstdint>

namespace gpurota::interposer {

// It is about to give `size` bytes, and cannot go before they have ended. 0: it is being destroyed.
uint16_t begin_giving(State& s, Pool& pool, CUmemoryPool handle, uint64_t size);
// It has given them.
void note_given(State& s, uint16_t pool);
// They were freed in stream order, and will end; `size` below zero: they were not, after all.
void note_ending(State& s, uint16_t pool, int64_t size);
// They have ended, or were not given.
void note_ended(State& s, uint16_t pool, uint64_t size);

// False: not one of the four figures, or not memory that moves.
bool read_moving_pool(State& s, CUmemoryPool handle, CUmemPool_attribute attribute,
                      uint64_t* value);
// Sets a high-water mark back to what there is now.
void reset_moving_pool(State& s, CUmemoryPool handle, CUmemPool_attribute attribute);

}  // namespace gpurota::interposer
