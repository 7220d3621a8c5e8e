// Memory of the virtual memory management family (cuMemCreate and its mappings).
//
// Physical memory lives until its last handle is released *and* its last mapping is gone; crediting it
// at cuMemRelease would let create, map, release walk past the limit. Only memory on a GPU of the
// lease is charged: host memory is not, and an imported handle is its exporter's.
#pragma once

#include "interposer/state.h"

#include <cstdint>

namespace gpurota::interposer {

// The tables below return the bytes (and the slot) to credit: those whose last reference this was.
struct Credit {
  int slot;
  int64_t bytes;
};

void vmm_created(State& s, uint64_t handle, uint64_t size, int slot);
void vmm_imported(State& s, uint64_t handle);
void vmm_mapped(State& s, uint64_t ptr, uint64_t size, uint64_t handle);
// A reference by handle appears: cuMemRetainAllocationHandle.
void vmm_retained(State& s, uint64_t handle);

// In two steps around the driver's call, as the driver may give the handle's number out again at once.
struct Released {
  uint64_t physical;  // 0: not known
  bool last_handle;
};
Released vmm_release_begins(State& s, uint64_t handle);
void vmm_release_failed(State& s, uint64_t handle, const Released& released);
Credit vmm_release_done(State& s, const Released& released);

// All mappings inside [ptr, ptr + size) are gone. Credits by slot, as they may be of several GPUs.
void vmm_unmapped(State& s, uint64_t ptr, uint64_t size, int64_t credits[GPUROTA_SLOTS]);

}  // namespace gpurota::interposer
