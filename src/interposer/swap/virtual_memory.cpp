#include "interposer/swap/virtual_memory.h"

#include "interposer/account/holdings.h"
#include "interposer/driver/own_calls.h"
#include "interposer/gate/gated.h"
#include "interposer/memory/reserve.h"
#include "interposer/memory/vmm.h"
#include "interposer/os/debug.h"
#include "interposer/swap/allocations.h"
#include "interposer/swap/devices.h"
#include "interposer/swap/grants.h"
#include "interposer/swap/swap_make.h"

namespace gpurota::interposer {
namespace {

bool in_pages(uint64_t value) { return value % kPageBytes == 0; }

// A plain copy cannot restore compressible memory and tiles of sparse arrays. Memory that can be
// exported has one handle of the driver, so it must fit one block.
bool can_move(const CUmemAllocationProp& prop, uint64_t size, unsigned long long flags) {
  const auto types = static_cast<uint64_t>(static_cast<unsigned>(prop.requestedHandleTypes));
  if (prop.type != CU_MEM_ALLOCATION_TYPE_PINNED || flags != 0 || size == 0 || !in_pages(size)) {
    return false;
  }
  if (prop.win32HandleMetaData != nullptr || types > kHandleTypes ||
      prop.allocFlags.compressionType != 0 || prop.allocFlags.usage != 0) {
    return false;
  }
  return SwapSpace::cost(size) != UINT64_MAX && (types == 0 || size <= kMostBlock);
}

uint32_t traits_of(const CUmemAllocationProp& prop) {
  return static_cast<uint32_t>(prop.requestedHandleTypes) |
         (prop.allocFlags.gpuDirectRDMACapable != 0 ? kRdmaCapable : 0);
}

// Copies need any context on the GPU. nullptr: there is none.
SwapDevice* device_for(State& s, int slot) {
  if (swap_of(s).devices[slot].ready.load(std::memory_order_acquire) == 0) {
    Lock lock(swap_of(s).contexts_mutex);
    if (have_stream(s, slot) != CUDA_SUCCESS) return nullptr;
  }
  return swap_device(s, slot, nullptr);
}

bool add_handle(Vmm& v, const Physical& made, CUmemGenericAllocationHandle* out) {
  Lock lock(v.mutex);
  const uint64_t id = ++v.last_id;
  Physical* p = v.physicals.put(id);
  HandleRef* known = p != nullptr ? v.handles.put(kVirtualHandle | id) : nullptr;
  if (known == nullptr) {
    Physical unknown{};
    v.physicals.take(id, &unknown);
    return false;
  }
  *p = made;
  *known = {id, 1};
  v.moving.fetch_add(1, std::memory_order_relaxed);
  *out = kVirtualHandle | id;
  return true;
}

void end_memory(State& s, const Physical& gone) {
  SwapFreed freed{};
  const RelaxedCapture relaxed;
  swap_of(s).devices[gone.slot].space.free(gone.home, &freed);
  swap_shrink(gone.slot, freed.released, freed.dropped, freed.wired, freed.hosted);
}

// With Vmm::mutex held.
bool note_mapping(Vmm& v, const AddressRange& at, const Mapping& made) {
  Mapping* mapping = v.mappings.put(at.address);
  if (mapping == nullptr) return false;
  *mapping = made;
  for (uint64_t a = at.address; a < at.address + at.size; a += kPageBytes) {
    uint64_t* page = v.pages.put(a / kPageBytes);
    if (page == nullptr) return false;
    *page = at.address;
  }
  v.page_count.store(v.pages.size(), std::memory_order_relaxed);
  return true;
}

// With Vmm::mutex held.
void forget_mapping(Vmm& v, const AddressRange& at) {
  Mapping gone{};
  uint64_t key = 0;
  v.mappings.take(at.address, &gone);
  for (uint64_t a = at.address; a < at.address + at.size; a += kPageBytes) {
    v.pages.take(a / kPageBytes, &key);
  }
  v.page_count.store(v.pages.size(), std::memory_order_relaxed);
}

// Subtracts one mapping from the count: a mapping was removed, or could not be made.
void drop_mapping(State& s, uint64_t id) {
  int64_t credits[GPUROTA_SLOTS] = {};
  {
    Lock lock(memory_of(s).vmm.mutex);
    Physical* p = memory_of(s).vmm.physicals.find(id);
    if (p != nullptr) --p->mappings;
    vmm_drop_if_dead(memory_of(s).vmm, id, credits);
  }
  put_all(credits);
}

}  // namespace

bool virtual_create(const CUmemAllocationProp& prop, int slot, uint64_t size,
                    unsigned long long flags, CUmemGenericAllocationHandle* out, CUresult* result) {
  State& s = state();
  if (out == nullptr || !can_move(prop, size, flags)) return false;
  SwapDevice* device = device_for(s, slot);
  if (device == nullptr) return false;
  Physical made{};
  made.size = size;
  made.handles = 1;
  made.slot = slot;
  const auto make = [&](const SwapRoom& room, bool* kept) {
    const RelaxedCapture relaxed;
    made.traits = traits_of(prop);
    // GPUDirect RDMA is for GPU memory only.
    if (room.hosted != 0) made.traits = (made.traits & ~kRdmaCapable) | kHosted;
    const CUresult paged = device->space.allocate_pages(size, made.traits, &made.home);
    *kept = paged == CUDA_SUCCESS;
    return paged;
  };
  *result = swap_make(slot, size, false, make, [&](Answer why) { return refuse(slot, size, why); });
  if (*result == CUDA_SUCCESS && add_handle(memory_of(s).vmm, made, out)) {
    count(&s.slots[slot].allocations);
  } else if (*result == CUDA_SUCCESS) {
    end_memory(s, made);
    *result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  s.mirror(slot);
  return true;
}

CUresult virtual_map(State& s, const AddressRange& at, uint64_t offset,
                     CUmemGenericAllocationHandle handle, unsigned long long flags) {
  if (flags != 0 || at.size == 0 || !in_pages(at.address | at.size | offset) ||
      virtual_any(s, at)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Physical memory{};
  uint64_t id = 0;
  {
    Lock lock(memory_of(s).vmm.mutex);
    Physical* p = physical_of(memory_of(s).vmm, handle, &id);
    if (p == nullptr || offset > p->size || at.size > p->size - offset) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    ++p->mappings;
    memory = *p;
  }
  SwapSpace& space = swap_of(s).devices[memory.slot].space;
  CUresult result = kNotLet;
  {
    const GatePass pass(GateClass::kResidency, nullptr, false);
    if (!pass.refused()) result = space.map_alias(memory.home, offset, at.address, at.size);
  }
  if (result == CUDA_SUCCESS) {
    Lock lock(memory_of(s).vmm.mutex);
    if (note_mapping(memory_of(s).vmm, at, {at.size, id, offset, 0})) return result;
    forget_mapping(memory_of(s).vmm, at);
    result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    space.unmap_alias(memory.home, offset, at.address, at.size);  // in case it was mapped
  }
  drop_mapping(s, id);
  return result;
}

CUresult virtual_unmap(State& s, const VirtualFound& found) {
  const AddressRange& at = found.mapping;
  const CUresult result = swap_of(s).devices[found.slot].space.unmap_alias(found.home, found.offset,
                                                                           at.address, at.size);
  if (result != CUDA_SUCCESS) return result;
  {
    Lock lock(memory_of(s).vmm.mutex);
    forget_mapping(memory_of(s).vmm, at);
  }
  drop_mapping(s, found.physical);
  return result;
}

CUresult virtual_set_access(State& s, const AddressRange& range, const CUmemAccessDesc* list,
                            size_t count) {
  constexpr int kKnown = 32;  // devices that have two bits in the mask
  uint64_t mask = 0;
  uint64_t value = 0;
  if (list == nullptr || count == 0 || virtual_cuts(s, range)) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const CUmemLocation& location = list[i].location;
    if (location.type != CU_MEM_LOCATION_TYPE_DEVICE || location.id < 0 || location.id >= kKnown) {
      // Access that could not be given again after a restore: wire the memory.
      const CUresult stays = virtual_wire_range(s, range);
      if (stays != CUDA_SUCCESS) return stays;
      continue;
    }
    const int shift = 2 * location.id;
    mask |= uint64_t{3} << shift;
    value = (value & ~(uint64_t{3} << shift)) | (static_cast<uint64_t>(list[i].flags) & 3) << shift;
  }
  const GatePass pass(GateClass::kResidency, nullptr, false);
  if (pass.refused()) return kNotLet;
  const CUresult result = GPUROTA_OWN(cuMemSetAccess)(range.address, range.size, list, count);
  if (result != CUDA_SUCCESS) return result;
  const uint64_t end = range.address + range.size;
  for (uint64_t at = virtual_next(s, range.address, end); at < end;) {
    VirtualFound found;
    if (!virtual_find(s, at, &found)) break;
    {
      Lock lock(memory_of(s).vmm.mutex);
      Mapping* mapping = memory_of(s).vmm.mappings.find(found.mapping.address);
      if (mapping != nullptr) mapping->access = (mapping->access & ~mask) | value;
    }
    swap_of(s).devices[found.slot].space.note_access(
        found.home, found.offset, found.mapping.address, found.mapping.size, mask, value);
    at = virtual_next(s, found.mapping.address + found.mapping.size, end);
  }
  return result;
}

CUresult virtual_properties(State& s, CUmemGenericAllocationHandle handle,
                            CUmemAllocationProp* out) {
  uint64_t id = 0;
  Lock lock(memory_of(s).vmm.mutex);
  const Physical* p = physical_of(memory_of(s).vmm, handle, &id);
  if (p == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = {};
  out->type = CU_MEM_ALLOCATION_TYPE_PINNED;
  out->requestedHandleTypes = static_cast<CUmemAllocationHandleType>(p->traits & kHandleTypes);
  out->location = {CU_MEM_LOCATION_TYPE_DEVICE, swap_of(s).devices[p->slot].device};
  out->allocFlags.gpuDirectRDMACapable = (p->traits & kRdmaCapable) != 0 ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult virtual_wire(State& s, CUmemGenericAllocationHandle handle,
                      CUmemGenericAllocationHandle* out) {
  Physical memory{};
  uint64_t id = 0;
  {
    Lock lock(memory_of(s).vmm.mutex);
    Physical* p = physical_of(memory_of(s).vmm, handle, &id);
    if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
    memory = *p;
    ++p->mappings;  // so that the memory does not end meanwhile
  }
  CUresult result = swap_wire(s, memory.slot, memory.home);
  if (result == CUDA_SUCCESS) {
    uint64_t handles[2];  // the program's one handle must stand for one handle of the driver
    const uint32_t count =
        swap_of(s).devices[memory.slot].space.handles(memory.home, 0, 2, handles);
    if (count != 1) {
      result = CUDA_ERROR_NOT_SUPPORTED;
    } else {
      *out = handles[0];
    }
  }
  drop_mapping(s, id);
  return result;
}

CUresult virtual_export(State& s, CUmemGenericAllocationHandle handle,
                        CUmemAllocationHandleType type, CUmemGenericAllocationHandle* out) {
  CUmemAllocationProp prop{};
  const CUresult known = virtual_properties(s, handle, &prop);
  if (known != CUDA_SUCCESS) return known;
  if ((prop.requestedHandleTypes & type) == 0) return CUDA_ERROR_INVALID_VALUE;
  return virtual_wire(s, handle, out);
}

CUresult virtual_wire_range(State& s, const AddressRange& range) {
  const uint64_t end = range.address + range.size;
  for (uint64_t at = virtual_next(s, range.address, end); at < end;) {
    VirtualFound found;
    CUmemGenericAllocationHandle handle = 0;
    CUmemGenericAllocationHandle wired = 0;
    CUresult result = CUDA_SUCCESS;
    if (!virtual_find(s, at, &found)) break;
    if ((found.traits & kHosted) != 0) {  // never moves anyway
      at = virtual_next(s, found.mapping.address + found.mapping.size, end);
      continue;
    }
    if (!virtual_retain(s, at, &handle, &result) || result != CUDA_SUCCESS) return result;
    result = virtual_wire(s, handle, &wired);
    const Released released = vmm_release_begins(s, handle);
    int64_t credits[GPUROTA_SLOTS] = {};
    vmm_release_done(s, released, credits);
    put_all(credits);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_SUPPORTED) return result;
    at = virtual_next(s, found.mapping.address + found.mapping.size, end);
  }
  return CUDA_SUCCESS;
}

void virtual_end(State& s) {
  while (memory_of(s).vmm.ended.load(std::memory_order_acquire) != 0) {
    Physical gone{};
    {
      Lock lock(memory_of(s).vmm.mutex);
      const uint64_t id = memory_of(s).vmm.ended.load();
      if (id == 0 || !memory_of(s).vmm.physicals.take(id, &gone)) return;
      memory_of(s).vmm.ended.store(gone.next_ended);
    }
    end_memory(s, gone);
    if (gone.key != 0) leave_memory(gone.slot, gone.key, gone.size, Left::kCredited);
    memory_of(s).vmm.moving.fetch_sub(1, std::memory_order_relaxed);
    s.mirror(gone.slot);
  }
}

}  // namespace gpurota::interposer
