// The driver as swap memory uses it: a handful of calls behind pointers, so that the bookkeeping
// can be run on a fake that fails at any of them.
//
// Copies are only begun by copy_out and copy_in; wait ends all that were begun before the fence.
// The real ones (devices.cpp) run on the helper thread's own stream, in relaxed capture mode. Every
// call may fail at any time with anything; nothing here is called with a lock of ours held, except
// where it says so.
#pragma once

#include "abi/cuda_abi.h"
#include "interposer/swap/hash.h"

#include <cstdint>

namespace gpurota::interposer {

// How physical memory is made, beyond being GPU memory: as the program asked for it. 0: plain.
inline constexpr uint32_t kHandleTypes =
    0xffff;  // CUmemAllocationHandleType that it may be exported as
inline constexpr uint32_t kRdmaCapable = 1u << 16;
// Host memory that GPUs use where it is: plain, whatever else is asked for.
inline constexpr uint32_t kHosted = 1u << 17;

struct SwapCalls {
  void* self;
  // Addresses, kept for an allocation's life whatever backs them.
  CUresult (*reserve)(void* self, uint64_t size, uint64_t* address);
  CUresult (*unreserve)(void* self, uint64_t address, uint64_t size);
  // GPU memory.
  CUresult (*create)(void* self, uint64_t size, uint32_t traits, uint64_t* handle);
  CUresult (*release)(void* self, uint64_t handle);
  CUresult (*map)(void* self, uint64_t address, uint64_t size, uint64_t offset, uint64_t handle);
  CUresult (*unmap)(void* self, uint64_t address, uint64_t size);
  CUresult (*set_access)(void* self, uint64_t address, uint64_t size);
  // Between GPU and pinned host memory.
  CUresult (*copy_out)(void* self, void* host, uint64_t address, uint64_t size);
  CUresult (*copy_in)(void* self, uint64_t address, const void* host, uint64_t size);
  CUresult (*fence)(void* self, uint64_t* token);
  CUresult (*wait)(void* self, uint64_t token);
  // Host memory: private, not in core dumps, not inherited by a fork. Zeroed. In a hurry several
  // threads have the kernel clear it. nullptr: none to be had.
  void* (*map_host)(void* self, uint64_t size, bool hurry);
  void (*unmap_host)(void* self, void* memory, uint64_t size);
  bool (*pin)(void* self, void* memory, uint64_t size);
  void (*unpin)(void* self, void* memory);
  // Access for GPUs as the program gave it: two bits of CUmemAccess_flags for each device of the
  // driver.
  CUresult (*allow)(void* self, uint64_t address, uint64_t size, uint64_t access);
  // The hash (hash.h); none of the three without it. `hash_sums`: where sums can be written,
  // kHashSums of them; nullptr: nothing can be hashed now.
  HashSum* (*hash_sums)(void* self) = nullptr;
  // Begun as copies are: a sum for each piece of [address, address + size) is in `sums`, a part of
  // the above, when a fence after it has been waited for.
  CUresult (*hash)(void* self, uint64_t address, uint64_t size, uint64_t seed,
                   HashSum* sums) = nullptr;
  // Sums were found to be wrong: never again.
  void (*distrust_hash)(void* self) = nullptr;
  // Of memory that the program did not ask for by cuMemCreate, as for `create`.
  uint32_t traits = 0;
};

// Waits for all copies that were begun.
inline CUresult wait_for_copies(const SwapCalls& calls) {
  uint64_t token = 0;
  const CUresult result = calls.fence(calls.self, &token);
  return result != CUDA_SUCCESS ? result : calls.wait(calls.self, token);
}

inline constexpr uint32_t kHashSums = 16384;

}  // namespace gpurota::interposer
