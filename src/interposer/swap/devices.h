// The GPUs of a swap tenant, and the driver as swap memory uses it there (SwapCalls,
// driver_calls.h).
//
// Our copies run in a non-blocking stream of our own in a context of the program's, on any thread,
// in relaxed capture mode: nothing here ends a capture of the program's, waits for its work, or is
// waited for by it.
#pragma once

#include "interposer/swap/tenant.h"

namespace gpurota::interposer {

// The device of a slot, ready to allocate, with `context` for its copies if it has none. nullptr:
// the driver cannot.
SwapDevice* swap_device(State& s, int slot, CUcontext context);

// Makes sure that there is a stream for copies, in any context of the slot that lives.
// CUDA_SUCCESS: there is; CUDA_ERROR_INVALID_CONTEXT: there is no context, so nobody can use the
// memory either.
CUresult have_stream(State& s, int slot);

// Access to [address, address + size) for the memory's own GPU and for all GPUs of the lease that
// can reach it, in one call: one for each would take as long again.
CUresult give_all_access(State& s, CUdevice device, uint64_t address, uint64_t size);

// The context is gone, and with it what we had there.
void forget_device_context(State& s, CUcontext context);

}  // namespace gpurota::interposer
