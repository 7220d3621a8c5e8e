// The driver calls that swap memory needs, behind pointers, so that tests can run the bookkeeping
// on a fake driver that fails at any of them.
//
// copy_out and copy_in only begin a copy; wait returns when all copies that were begun before the
// fence are done. The real calls (devices.cpp) copy in a stream of our own, in relaxed capture
// mode. Every call may fail at any time with any error. No lock of ours is held during a call,
// except where a comment says so.
#pragma once

#include "abi/cuda_abi.h"
#include "interposer/swap/hash.h"

#include <cstdint>

namespace gpurota::interposer {

// Traits of physical memory that the program asked for. 0: plain GPU memory.
inline constexpr uint32_t kHandleTypes =
    0xffff;  // CUmemAllocationHandleType that it may be exported as
inline constexpr uint32_t kRdmaCapable = 1u << 16;
// Host memory that GPUs use in place. Always plain: other traits are ignored.
inline constexpr uint32_t kHosted = 1u << 17;

struct SwapCalls {
  void* self;
  // Address ranges, kept for an allocation's life whatever backs them.
  CUresult (*reserve)(void* self, uint64_t size, uint64_t* address);
  CUresult (*unreserve)(void* self, uint64_t address, uint64_t size);
  // GPU memory.
  CUresult (*create)(void* self, uint64_t size, uint32_t traits, uint64_t* handle);
  CUresult (*release)(void* self, uint64_t handle);
  CUresult (*map)(void* self, uint64_t address, uint64_t size, uint64_t offset, uint64_t handle);
  CUresult (*unmap)(void* self, uint64_t address, uint64_t size);
  CUresult (*set_access)(void* self, uint64_t address, uint64_t size);
  // Copies between GPU and pinned host memory.
  CUresult (*copy_out)(void* self, void* host, uint64_t address, uint64_t size);
  CUresult (*copy_in)(void* self, uint64_t address, const void* host, uint64_t size);
  CUresult (*fence)(void* self, uint64_t* token);
  CUresult (*wait)(void* self, uint64_t token);
  // Host memory: private, zeroed, not in core dumps, not inherited by a fork. `hurry`: several
  // threads have the kernel clear it. nullptr: no memory.
  void* (*map_host)(void* self, uint64_t size, bool hurry);
  void (*unmap_host)(void* self, void* memory, uint64_t size);
  bool (*pin)(void* self, void* memory, uint64_t size);
  void (*unpin)(void* self, void* memory);
  // Sets the access that the program has given to GPUs: two bits of CUmemAccess_flags for each
  // device of the driver.
  CUresult (*allow)(void* self, uint64_t address, uint64_t size, uint64_t access);
  // The hash (hash.h): all three pointers are set, or none. `hash_sums` returns room for kHashSums
  // sums; nullptr: nothing can be hashed now.
  HashSum* (*hash_sums)(void* self) = nullptr;
  // Only begins to hash, as copy_out only begins a copy. After a wait for a later fence, `sums`, a
  // part of hash_sums(), has a sum for each piece of [address, address + size).
  CUresult (*hash)(void* self, uint64_t address, uint64_t size, uint64_t seed,
                   HashSum* sums) = nullptr;
  // Sums were found to be wrong: stops hashing for good.
  void (*distrust_hash)(void* self) = nullptr;
  // For `create`: the traits of memory that the program did not ask for by cuMemCreate.
  uint32_t traits = 0;
};

// Waits for all copies that have been begun.
inline CUresult wait_for_copies(const SwapCalls& calls) {
  uint64_t token = 0;
  const CUresult result = calls.fence(calls.self, &token);
  return result != CUDA_SUCCESS ? result : calls.wait(calls.self, token);
}

inline constexpr uint32_t kHashSums = 16384;

}  // namespace gpurota::interposer
