// The GPUs of a swap tenant, and the driver as swap memory uses it there (SwapCalls,
// driver_calls.h).
//
// Our copies run in a non-blocking stream of our own in a context of the program's, on any thread,
// in relaxed capture mode: no copy ends a capture of the program's, and copies and the program's
// work do not wait for each other.
#pragma once

#include "interposer/swap/tenant.h"

namespace gpurota::interposer {

// The device of a slot, ready to allocate. Uses `context` for copies if the device has none.
// nullptr: the driver lacks what is needed.
SwapDevice* swap_device(State& s, int slot, CUcontext context);

// Makes sure that there is a stream for copies, in any living context of the slot.
// CUDA_ERROR_INVALID_CONTEXT: no context lives, so nobody can use the memory either.
CUresult have_stream(State& s, int slot);

// Makes [address, address + size) accessible to the memory's own GPU, and to all GPUs of the lease
// that can reach it. Calls the driver once, as each further call would take as long again.
CUresult give_all_access(State& s, CUdevice device, uint64_t address, uint64_t size);

// Forgets what we had in a context that is gone.
void forget_device_context(State& s, CUcontext context);

}  // namespace gpurota::interposer
