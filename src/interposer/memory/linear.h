// Linear memory: what is charged for it, and when the charge is credited.
//
// The driver carves small allocations out of 2 MiB blocks and gives large ones blocks of their own,
// so neither the requested size nor its rounding is what the GPU loses. The addresses show the
// cost: the first allocation in a 2 MiB block of addresses is charged for the block, and the last
// allocation to leave the block credits it. An allocation takes the most that it can cost before
// the driver is called and settles after, so the sum of charges is never below what the driver has
// mapped.
#pragma once

#include "interposer/memory/imports.h"
#include "interposer/memory/memory_part.h"

#include <cstdint>

namespace gpurota::interposer {

inline constexpr uint64_t kBlockBytes = uint64_t{2} << 20;

// References the blocks of [ptr, ptr + size). Returns the bytes of the blocks that had no reference
// before.
int64_t enter_blocks(State& s, uint64_t ptr, uint64_t size);
// Ends the references of [ptr, ptr + size), and credits the blocks that have no reference left.
void leave_blocks(State& s, int slot, uint64_t ptr, uint64_t size);

// The bytes to take for an allocation of `size` bytes before the driver is called. One more block,
// which an allocation at an unaligned address may touch, is taken once the address is known.
int64_t most_for(uint64_t size);

// Records an allocation. A stale record at the same address (of memory freed where no hook saw it)
// is credited.
void remember(State& s, uint64_t ptr, const Allocation& allocation);
// Removes an allocation's record and returns it; false for a pointer that is not ours.
bool forget(State& s, uint64_t ptr, Allocation* out);
// Finds an allocation's record; false for a pointer that is not ours.
bool find_allocation(State& s, uint64_t ptr, Allocation* out);
// Credits an allocation that was freed.
void credit(State& s, uint64_t ptr, const Allocation& allocation);
// Frees by `call`. The record is removed first: as soon as the memory is free, another thread may
// get its address.
template <typename Call>
CUresult free_counted(State& s, uint64_t ptr, Call call) {
  Allocation allocation{};
  if (!forget(s, ptr, &allocation)) return close_counted(s, ptr, call);
  const CUresult result = call();
  if (result == CUDA_SUCCESS) {
    credit(s, ptr, allocation);
    export_ends(s, ptr, Left::kCredited);
  } else {
    remember(s, ptr, allocation);
  }
  return result;
}
// Credits everything that lived in a context that is gone.
void credit_context(State& s, uint32_t serial);

}  // namespace gpurota::interposer
