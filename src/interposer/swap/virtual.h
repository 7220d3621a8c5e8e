// The program's own virtual memory (cuMemCreate and its family) in a swap lease: memory that moves.
//
// The program gets a handle of ours, which no driver function ever sees, and maps it where it likes. Behind it
// is a range of the device's SwapSpace; each mapping is an alias of its blocks there (swap/aliases.cpp), each
// handle and mapping a reference in State::vmm, as for all such memory. Called by the hooks in vmm.cpp,
// vmm_access.cpp, vmm_bindings.cpp and swap/answers.cpp, on any thread.
//
// Making, mapping and giving access wait while memory is away; unmapping and releasing never wait, also
// while the mover has the block. What another process or a device is given is wired from then on.
#pragma once

#include "interposer/state.h"

namespace gpurota::interposer {

// No address and no small number, which is what the driver's own handles are.
inline constexpr uint64_t kVirtualHandle = uint64_t{0xa70c} << 48;
inline bool is_virtual(CUmemGenericAllocationHandle handle) {
  return handle >> 48 == kVirtualHandle >> 48;
}

struct AddressRange {
  uint64_t address;
  uint64_t size;
};

// False: it cannot move, or nothing can be moved on that GPU yet, and is made as in other leases.
bool virtual_create(const CUmemAllocationProp& prop, int slot, uint64_t size,
                    unsigned long long flags, CUmemGenericAllocationHandle* out, CUresult* result);
CUresult virtual_map(State& s, const AddressRange& at, uint64_t offset,
                     CUmemGenericAllocationHandle handle, unsigned long long flags);
// Whether any of our mappings is in the range, or a part of one.
bool virtual_any(State& s, const AddressRange& range);
// All that is mapped in the range; what is not ours by `rest(address, size)`.
template <typename Rest>
CUresult virtual_unmap(State& s, const AddressRange& range, Rest rest);

// False: not an address of ours.
bool virtual_retain(State& s, uint64_t address, CUmemGenericAllocationHandle* out,
                    CUresult* result);
CUresult virtual_set_access(State& s, const AddressRange& range, const CUmemAccessDesc* list,
                            size_t count);
CUresult virtual_properties(State& s, CUmemGenericAllocationHandle handle,
                            CUmemAllocationProp* out);

// It stays where it is from now on, and counts as wired. `out`: the driver's handle.
CUresult virtual_wire(State& s, CUmemGenericAllocationHandle handle,
                      CUmemGenericAllocationHandle* out);
// All of ours that is mapped in the range.
CUresult virtual_wire_range(State& s, const AddressRange& range);

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

// With Vmm::mutex held: nothing refers to it any more. And then, without it: ends what was so marked.
void virtual_mark_ended(Vmm& v, uint64_t id);
void virtual_end(State& s);

// The parts of virtual_unmap().
bool virtual_cuts(State& s, const AddressRange& range);
CUresult virtual_unmap_one(State& s, const VirtualFound& found);
uint64_t virtual_next(State& s, uint64_t address, uint64_t end);

template <typename Rest>
CUresult virtual_unmap(State& s, const AddressRange& range, Rest rest) {
  if (virtual_cuts(s, range)) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t end = range.address + range.size;
  for (uint64_t at = range.address; at < end;) {
    VirtualFound found;
    const bool ours = virtual_find(s, at, &found);
    const uint64_t next = ours ? at + found.mapping.size : virtual_next(s, at, end);
    const CUresult result = ours ? virtual_unmap_one(s, found) : rest(at, next - at);
    if (result != CUDA_SUCCESS) return result;
    at = next;
  }
  return CUDA_SUCCESS;
}

}  // namespace gpurota::interposer
