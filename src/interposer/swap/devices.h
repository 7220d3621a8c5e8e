// The GPUs of a swap tenant, and the driver as swap memory uses it there (SwapCalls,
// driver_calls.h).
//
// Our copies run in a non-blocking stream of our own in a context of the program's, on any thread,
// in relaxed capture mode: nothing here ends a capture of the program's, waits for its work, or is
// waited for by it.
#pragma once

#include "interposer/swap/tenant.h"

namespace gpurota::interposer {

// The device of a slot, ready to allocate. Uses `context` for copies if the device has none.
// nullptr: the driver lacks what is needed.
SwapDevice* swap_device(State& s, int slot, CUcontext context);

// Makes sure that there is a stream for copies, in any living context of the slot.
// CUDA_ERROR_INVALID_CONTEXT: no context lives, so nobody can use the memory either.
CUresult have_stream(State& s, int slot);

// Access to [address, address + size) for the memory's own GPU and for all GPUs of the lease that
// can reach it, in one call: one for each would take as long again.
CUresult give_all_access(State& s, CUdevice device, uint64_t address, uint64_t size);

// Forgets what we had in a context that is gone.
void forget_device_context(State& s, CUcontext context);

}  // namespace gpurota::interposer
