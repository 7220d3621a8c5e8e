// Loads the hashing kernel into a context of the program's, tests it, and launches it in our own
// stream. hash.h says what the kernel computes, hash.ptx how.
//
// Loading takes the driver some 70 ms and may wait for work in flight. So the kernel is loaded once
// for a context, while the gate is kAway: then nothing is in flight, nothing captures, and nobody
// waits for this process. The GPU memory that the kernel takes is wired; the daemon counts it as
// memory that the process holds without reporting it. If anything fails, all memory is copied.
#pragma once

#include "abi/cuda_abi.h"
#include "interposer/swap/hash.h"

#include <cstdint>

namespace gpurota::interposer {

struct State;
struct SwapDevice;

// Loads the kernel where it is missing, if this is a good time to do so. Called by the worker, at
// any time.
void prepare_hashing(State& s);

// Forgets a kernel whose context is gone.
void forget_hasher(SwapDevice& device);

// For SwapCalls.
HashSum* hash_sums(void* self);
CUresult begin_hash(void* self, uint64_t address, uint64_t size, uint64_t seed, HashSum* sums);
void distrust_hash(void* self);

}  // namespace gpurota::interposer
