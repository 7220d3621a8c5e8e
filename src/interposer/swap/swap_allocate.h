// A swap tenant's allocations: memory that moves, requested from the daemon, and freed as the
// driver frees.
//
// Any thread of the program. MemoryPart::pointers marks a pointer as memory that moves, so that
// frees and queries find it. Nothing here waits for the daemon inside the gate.
#pragma once

#include "interposer/account/device.h"

namespace gpurota::interposer {

// Allocates where `place` is current.
CUresult swap_allocate(const Place& place, uint64_t size, CUdeviceptr* out);
CUresult swap_allocate_pitch(const Place& place, uint64_t width, uint64_t height, unsigned element,
                             CUdeviceptr* out, size_t* pitch);
// Allocates in stream order. Memory that the same stream has freed is used again at once. Memory
// that another stream has freed is used once the work before the free is done, or the stream is
// made to wait for that work. `pool`: the pool's number (memory/pool_figures.h).
CUresult swap_allocate_async(const Place& place, uint64_t size, CUstream stream, bool per_thread,
                             uint16_t pool, CUdeviceptr* out);

// False: not memory that moves. Otherwise `result` is the answer.
bool swap_free(State& s, uint64_t address, CUresult* result);
bool swap_free_async(State& s, uint64_t address, CUstream stream, bool per_thread,
                     CUresult* result);

// Frees the memory that lived in a context that is gone.
void swap_free_context(State& s, uint32_t serial);

}  // namespace gpurota::interposer
