// Finds the memory of a swap tenant by an address in it, and keeps memory from moving. Any thread.
#pragma once

#include "interposer/memory/memory_part.h"

#include <cstdint>

namespace gpurota::interposer {

// Wires the allocation at `address` and all that shares pages with it: from now on that memory does
// not move. Not to be called inside the gate, because the call may wait for a turn.
// CUDA_ERROR_OUT_OF_MEMORY: so much cannot be wired, or some of it is in host memory for good.
CUresult swap_wire(State& s, int slot, uint64_t address);

// The allocation that `address` lies in.
struct SwapFound {
  uint64_t base;
  Allocation allocation;
};
bool swap_find(State& s, uint64_t address, SwapFound* out);

// Whether `address` lies in memory that moves.
bool swap_moves(State& s, uint64_t address);

}  // namespace gpurota::interposer
