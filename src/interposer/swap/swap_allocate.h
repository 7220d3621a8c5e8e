// A swap tenant's allocations: memory that moves, asked for at the daemon, freed as the driver
// frees.
//
// Any thread of the program. A pointer is remembered in MemoryPart::pointers as one that moves, so
// that who frees it, or asks about it, finds out. Nothing here waits inside the gate for the
// daemon.
#pragma once

#include "interposer/account/device.h"

namespace gpurota::interposer {

// Where `place` is current.
CUresult swap_allocate(const Place& place, uint64_t size, CUdeviceptr* out);
CUresult swap_allocate_pitch(const Place& place, uint64_t width, uint64_t height, unsigned element,
                             CUdeviceptr* out, size_t* pitch);
// In stream order: what the stream itself freed before may be had again at once, and what another
// freed, behind that one's work. `pool`: its number (memory/pool_figures.h).
CUresult swap_allocate_async(const Place& place, uint64_t size, CUstream stream, bool per_thread,
                             uint16_t pool, CUdeviceptr* out);

// False: not memory that moves. Else `result` is the answer.
bool swap_free(State& s, uint64_t address, CUresult* result);
bool swap_free_async(State& s, uint64_t address, CUstream stream, bool per_thread,
                     CUresult* result);

// The context is gone: frees what lived in it.
void swap_free_context(State& s, uint32_t serial);

}  // namespace gpurota::interposer
