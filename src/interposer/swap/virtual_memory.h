// The program's own virtual memory (cuMemCreate and its family) in a swap lease: memory that moves.
//
// Behind a handle of ours (memory/virtual_handles.h) is a range of the device's SwapSpace; each
// mapping is an alias of its blocks there (swap/alias_table.h). Called by the hooks of the memory
// room through the table, by swap/vmm_access.cpp and swap/answers.cpp, on any thread.
//
// Making, mapping and giving access wait while memory is away; unmapping and releasing never wait,
// also while the mover has the block. Memory that another process or a device is given is wired
// from then on.
#pragma once

#include "interposer/memory/virtual_handles.h"

#include <cstddef>
#include <cstdint>

namespace gpurota::interposer {

// False: it cannot move, or nothing can be moved on that GPU yet, and is made as in other leases.
bool virtual_create(const CUmemAllocationProp& prop, int slot, uint64_t size,
                    unsigned long long flags, CUmemGenericAllocationHandle* out, CUresult* result);
CUresult virtual_map(State& s, const AddressRange& at, uint64_t offset,
                     CUmemGenericAllocationHandle handle, unsigned long long flags);
// One whole mapping.
CUresult virtual_unmap(State& s, const VirtualFound& found);

CUresult virtual_set_access(State& s, const AddressRange& range, const CUmemAccessDesc* list,
                            size_t count);
CUresult virtual_properties(State& s, CUmemGenericAllocationHandle handle,
                            CUmemAllocationProp* out);

// The memory stays where it is from now on, and counts as wired. `out`: the driver's handle.
CUresult virtual_wire(State& s, CUmemGenericAllocationHandle handle,
                      CUmemGenericAllocationHandle* out);
// The same, if it was made to be exported as `type`.
CUresult virtual_export(State& s, CUmemGenericAllocationHandle handle,
                        CUmemAllocationHandleType type, CUmemGenericAllocationHandle* out);
// All of ours that is mapped in the range.
CUresult virtual_wire_range(State& s, const AddressRange& range);

// Frees what neither a handle nor a mapping refers to any more. Without Vmm::mutex.
void virtual_end(State& s);

}  // namespace gpurota::interposer
