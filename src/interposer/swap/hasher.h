// The hashing kernel in a context of the program's: loaded, tried out, launched in our own stream.
// hash.h says what it computes, hash.ptx how.
//
// Loading takes the driver some 70 ms and may wait for what is in flight, so it is done once for a
// context, while memory is away: then nothing is in flight, nothing captures, and nobody waits for
// this process. The memory that the kernel takes of the GPU is wired; the daemon sees it as memory
// that the process holds besides. Whatever fails, everything is copied.
#pragma once

#include "abi/cuda_abi.h"
#include "interposer/swap/hash.h"

#include <cstdint>

namespace gpurota::interposer {

struct State;
struct SwapDevice;

// Loads it where it is missing; the worker's, at any time: it looks whether this is one to do so.
void prepare_hashing(State& s);

// The context is gone, and with it what was loaded there.
void forget_hasher(SwapDevice& device);

// As SwapCalls wants them.
HashSum* hash_sums(void* self);
CUresult begin_hash(void* self, uint64_t address, uint64_t size, uint64_t seed, HashSum* sums);
void distrust_hash(void* self);

}  // namespace gpurota::interposer
