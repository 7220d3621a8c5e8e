// Finds memory that moves by its handle or by a mapping, where the program maps the memory itself
// (cuMemCreate and its family).
//
// The program gets a handle of ours, which no driver function ever sees, and maps it where it
// likes. Each handle and mapping is a reference in MemoryPart::vmm, as for all memory of
// cuMemCreate. swap/virtual_memory.h makes, maps and moves the memory. Any thread. Where nothing
// moves, a search costs one load.
#pragma once

#include "abi/cuda_abi.h"
#include "interposer/account/swap_table.h"
#include "interposer/memory/memory_part.h"

#include <cstdint>

namespace gpurota::interposer {

// The driver's own handles are addresses or small numbers; a number with these top bits is neither.
inline constexpr uint64_t kVirtualHandle = uint64_t{0xa70c} << 48;
inline bool is_virtual(CUmemGenericAllocationHandle handle) {
  return handle >> 48 == kVirtualHandle >> 48;
}

struct AddressRange {
  uint64_t address;
  uint64_t size;
};

// The mapping that an address lies in.
struct VirtualFound {
  AddressRange mapping;
  uint64_t offset;  // in the memory
  uint64_t access;  // as SwapCalls::allow takes it
  uint64_t physical;
  uint64_t home;
  uint32_t traits;
  int slot;
};
bool virtual_find(State& s, uint64_t address, VirtualFound* out);
// The first mapped address that is not below `address`; `end` if none is mapped before `end`.
uint64_t virtual_next(State& s, uint64_t address, uint64_t end);
// Whether the range overlaps any of our mappings.
bool virtual_any(State& s, const AddressRange& range);
// Whether the range begins or ends inside one of our mappings.
bool virtual_cuts(State& s, const AddressRange& range);

// False: not an address of ours.
bool virtual_retain(State& s, uint64_t address, CUmemGenericAllocationHandle* out,
                    CUresult* result);

// Marks memory to which nothing refers any more. With Vmm::mutex held. SwapTable::virtual_end ends
// the marked memory without the lock.
void virtual_mark_ended(Vmm& v, uint64_t id);

// Unmaps all that is mapped in the range. `rest(address, size)` unmaps a part that is not ours.
template <typename Rest>
CUresult virtual_unmap_all(State& s, const AddressRange& range, Rest rest) {
  if (virtual_cuts(s, range)) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t end = range.address + range.size;
  for (uint64_t at = range.address; at < end;) {
    VirtualFound found;
    const bool ours = virtual_find(s, at, &found);
    const uint64_t next = ours ? at + found.mapping.size : virtual_next(s, at, end);
    const CUresult result = ours ? g_swap.virtual_unmap(s, found) : rest(at, next - at);
    if (result != CUDA_SUCCESS) return result;
    at = next;
  }
  return CUDA_SUCCESS;
}

}  // namespace gpurota::interposer
