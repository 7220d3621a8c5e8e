// How much the pools of a swap lease have given, in the driver's terms (cuMemPoolGetAttribute). The
// memory moves, so the driver counts it in no pool. The program sees what a driver would show,
// except that nothing is kept for later.
//
// Any thread, no locks. A pool is named by its number, as in Allocation::pool; 0 is none, and
// nothing is counted.
#pragma once

#include "interposer/memory/memory_part.h"

#include <cstdint>

namespace gpurota::interposer {

// The pool is about to give `size` bytes, and cannot end before they have ended. Returns the pool's
// number; 0: the pool is being destroyed.
uint16_t begin_giving(State& s, Pool& pool, CUmemoryPool handle, uint64_t size);
// The pool has given the bytes.
void note_given(State& s, uint16_t pool);
// The bytes were freed in stream order, and will end; `size` below zero undoes that.
void note_ending(State& s, uint16_t pool, int64_t size);
// The bytes have ended, or were not given.
void note_ended(State& s, uint16_t pool, uint64_t size);

// False: not one of the four figures, or not memory that moves.
bool read_moving_pool(State& s, CUmemoryPool handle, CUmemPool_attribute attribute,
                      uint64_t* value);
// Resets a high-water mark to the present figure.
void reset_moving_pool(State& s, CUmemoryPool handle, CUmemPool_attribute attribute);

}  // namespace gpurota::interposer
