// The program's own virtual memory (cuMemCreate and its family) in a swap lease: memory that moves.
//
// A handle of ours (memory/virtual_handles.h) stands for a range of the device's SwapSpace; each
// mapping is an alias of the range's blocks (swap/alias_table.h). Called by the hooks in memory/
// through SwapTable, by swap/vmm_access.cpp and by swap/answers.cpp, on any thread.
//
// Making, mapping and giving access wait while the gate is kAway; unmapping and releasing never
// wait, even while the mover moves the block. Memory that is given to another process or a device
// is wired from then on.
#pragma once

#include "interposer/memory/virtual_handles.h"

#include <cstddef>
#include <cstdint>

namespace gpurota::interposer {

// False: such memory cannot move, or nothing can be moved on that GPU yet, so it is made as in
// other leases.
bool virtual_create(const CUmemAllocationProp& prop, int slot, uint64_t size,
                    unsigned long long flags, CUmemGenericAllocationHandle* out, CUresult* result);
CUresult virtual_map(State& s, const AddressRange& at, uint64_t offset,
                     CUmemGenericAllocationHandle handle, unsigned long long flags);
// Unmaps one whole mapping.
CUresult virtual_unmap(State& s, const VirtualFound& found);

CUresult virtual_set_access(State& s, const AddressRange& range, const CUmemAccessDesc* list,
                            size_t count);
CUresult virtual_properties(State& s, CUmemGenericAllocationHandle handle,
                            CUmemAllocationProp* out);

// Wires the memory: it never moves again. `out`: the driver's handle.
CUresult virtual_wire(State& s, CUmemGenericAllocationHandle handle,
                      CUmemGenericAllocationHandle* out);
// The same, if the memory was made to be exported as `type`.
CUresult virtual_export(State& s, CUmemGenericAllocationHandle handle,
                        CUmemAllocationHandleType type, CUmemGenericAllocationHandle* out);
// Wires all memory of ours that is mapped in the range.
CUresult virtual_wire_range(State& s, const AddressRange& range);

// Frees memory to which neither a handle nor a mapping refers any more. Without Vmm::mutex held.
void virtual_end(State& s);

}  // namespace gpurota::interposer
