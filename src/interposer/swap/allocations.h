// Finds the memory of a swap tenant that an address is in, and notes memory that may not move any
// more. Any thread.
#pragma once

#include "interposer/memory/memory_part.h"

#include <cstdint>

namespace gpurota::interposer {

// All that shares pages with the allocation at `address` stays from now on, and counts as wired.
// Not while the gate is passed: it may wait for a turn. CUDA_ERROR_OUT_OF_MEMORY: not so much can
// stay, or some of it is in host memory for good.
CUresult swap_wire(State& s, int slot, uint64_t address);

// The allocation that `address` lies in.
struct SwapFound {
  uint64_t base;
  Allocation allocation;
};
bool swap_find(State& s, uint64_t address, SwapFound* out);

// Whether there is one.
bool swap_moves(State& s, uint64_t address);

}  // namespace gpurota::interposer
