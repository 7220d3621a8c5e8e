// Memory of the virtual memory management family (cuMemCreate and its mappings).
//
// Physical memory lives until its last handle is released *and* its last mapping is gone: if
// cuMemRelease credited the memory, a program could exceed the limit by create, map, release. Only
// memory on a GPU of the lease is charged: host memory is not. Imported memory is charged as
// imports.h says.
#pragma once

#include "interposer/memory/memory_part.h"

#include <cstdint>

namespace gpurota::interposer {

void vmm_created(State& s, uint64_t handle, uint64_t size, int slot);
// A handle was imported. CUDA_ERROR_OUT_OF_MEMORY: there is no room for its memory, and the handle
// is released.
CUresult vmm_imported(State& s, uint64_t handle, uint64_t key);
// The handle was exported as this descriptor.
void vmm_exported(State& s, uint64_t handle, int fd);
void vmm_mapped(State& s, uint64_t ptr, uint64_t size, uint64_t handle);
// A reference by handle appears: cuMemRetainAllocationHandle.
void vmm_retained(State& s, uint64_t handle, uint64_t address);

// The functions below add the bytes whose last reference ended to `credits`, by slot.

// A release has two steps around the driver's call, as the driver may give the handle's number out
// again at once.
struct Released {
  uint64_t physical;  // 0: not known
};
Released vmm_release_begins(State& s, uint64_t handle);
void vmm_release_failed(State& s, uint64_t handle, const Released& released);
void vmm_release_done(State& s, const Released& released, int64_t credits[GPUROTA_SLOTS]);

// All mappings inside [ptr, ptr + size) are gone.
void vmm_unmapped(State& s, uint64_t ptr, uint64_t size, int64_t credits[GPUROTA_SLOTS]);

// Memory held by something other than a handle or an address (vmm_bindings.cpp). An owner is a
// multicast object, by its id, or an array, by its handle.
void vmm_multicast_created(State& s, uint64_t handle);
uint64_t vmm_id(State& s, uint64_t handle);  // 0: not known
void vmm_bound(State& s, uint64_t owner, uint64_t offset, uint64_t handle);
// Notes that the memory mapped inside [ptr, ptr + size) is bound.
void vmm_bound_range(State& s, uint64_t owner, uint64_t offset, uint64_t ptr, uint64_t size);
// Notes that memory bound to [offset, offset + size) of the owner was unbound: only the memory of
// `slot`, or all of it if `slot` is below zero.
void vmm_unbound(State& s, uint64_t owner, uint64_t offset, uint64_t size, int slot,
                 int64_t credits[GPUROTA_SLOTS]);
void vmm_owner_gone(State& s, uint64_t owner, int64_t credits[GPUROTA_SLOTS]);
// The memory of a handle; nullptr if the handle is not known, or its memory has ended. `id`: the
// memory's number, 0 if the handle is not known. Under Vmm::mutex.
inline Physical* physical_of(Vmm& v, uint64_t handle, uint64_t* id = nullptr) {
  const HandleRef* known = v.handles.find(handle);
  if (id != nullptr) *id = known != nullptr ? known->physical : 0;
  return known != nullptr ? v.physicals.find(known->physical) : nullptr;
}

// Removes the memory `id` if nothing refers to it any more. Under Vmm::mutex.
void vmm_drop_if_dead(Vmm& v, uint64_t id, int64_t credits[GPUROTA_SLOTS]);

// For memory that other processes may have: vmm_mark_shared_ended() marks it as ended, under
// Vmm::mutex. vmm_end_shared() ends all that is marked, without the lock.
void vmm_mark_shared_ended(Vmm& v, uint64_t id);
void vmm_end_shared(State& s);

// Puts credits back into the headroom.
void put_all(const int64_t credits[GPUROTA_SLOTS]);

}  // namespace gpurota::interposer
