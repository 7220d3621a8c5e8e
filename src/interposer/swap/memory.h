// A swap tenant's allocations: memory that moves, asked for at the daemon, freed as the driver frees.
//
// Any thread of the program. A pointer is remembered in State::pointers as one that moves, so that who frees it, or
// asks about it, finds out. Nothing here waits inside the gate for the daemon.
#pragma once

#include "interposer/device.h"
#include "interposer/state.h"

namespace gpurota::interposer {

// Where `place` is current.
CUresult swap_allocate(const Place& place, uint64_t size, CUdeviceptr* out);
CUresult swap_allocate_pitch(const Place& place, uint64_t width, uint64_t height, unsigned element,
                             CUdeviceptr* out, size_t* pitch);
// In stream order: what the stream itself freed before may be had again at once, and what another freed, behind that
// one's work. `pool`: its number (pool_figures.h).
CUresult swap_allocate_async(const Place& place, uint64_t size, CUstream stream, bool per_thread,
                             uint16_t pool, CUdeviceptr* out);

// False: not memory that moves. Else `result` is the answer.
bool swap_free(State& s, uint64_t address, CUresult* result);
bool swap_free_async(State& s, uint64_t address, CUstream stream, bool per_thread,
                     CUresult* result);

void swap_stream_gone(State& s, uint64_t key);

// Ends what was freed in stream order, or during a capture, up to number `done`: all work that was there then is over, in
// every stream. That of the stream it was freed in is not enough: a program may free what another stream still uses, and
// lives with the driver, whose pools keep such memory mapped. Whether there was any.
bool swap_end_freed(State& s, uint64_t done);
// The same, if nothing is in flight.
bool swap_end_freed_if_idle(State& s);
// The same, once what is in flight now is over; if that takes no longer than a second. Who refuses memory looks so first.
bool swap_end_freed_soon(State& s);

// A context is about to go, and events in it: what was freed in stream order is not asked about any more, and ends
// once nothing is in flight.
void swap_forget_events(State& s);
// The context is gone: frees what lived in it.
void swap_free_context(State& s, uint32_t serial);

// All that shares pages with the allocation at `address` stays from now on, and counts as wired. Not while the gate
// is passed: it may wait for a turn. CUDA_ERROR_OUT_OF_MEMORY: not so much can stay, or some of it is in host
// memory for good.
CUresult swap_wire(State& s, int slot, uint64_t address);

// The allocation that `address` lies in.
struct SwapFound {
  uint64_t base;
  Allocation allocation;
};
bool swap_find(State& s, uint64_t address, SwapFound* out);

}  // namespace gpurota::interposer
