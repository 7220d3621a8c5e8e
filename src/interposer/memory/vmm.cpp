#include "interposer/memory/vmm.h"

#include "interposer/account/device.h"
#include "interposer/account/swap_table.h"
#include "interposer/driver/driver.h"
#include "interposer/memory/reserve.h"
#include "interposer/memory/virtual_handles.h"
#include "interposer/os/debug.h"

namespace gpurota::interposer {
namespace {

constexpr uint64_t kSmallestMapping = uint64_t{64} << 10;

}  // namespace

void vmm_created(State& s, uint64_t handle, uint64_t size, int slot) {
  Lock lock(memory_of(s).vmm.mutex);
  const uint64_t id = ++memory_of(s).vmm.last_id;
  Physical* p = memory_of(s).vmm.physicals.put(id);
  HandleRef* known = memory_of(s).vmm.handles.put(handle);
  if (p == nullptr || known == nullptr) return;  // stays charged
  *p = {};
  p->size = size;
  p->handles = 1;
  p->slot = slot;
  *known = {id, 1};
}

void vmm_mapped(State& s, uint64_t ptr, uint64_t size, uint64_t handle) {
  Lock lock(memory_of(s).vmm.mutex);
  const HandleRef* known = memory_of(s).vmm.handles.find(handle);
  Physical* p = known != nullptr ? memory_of(s).vmm.physicals.find(known->physical) : nullptr;
  const uint64_t id = p != nullptr ? known->physical : 0;
  if (p != nullptr) ++p->mappings;
  Mapping* mapping = memory_of(s).vmm.mappings.put(ptr);
  if (mapping != nullptr)
    *mapping = {size, id, 0, 0};  // without an entry the memory is never credited
}

// The address identifies the memory, because the driver may return a handle that it returned
// before, or a new one.
void vmm_retained(State& s, uint64_t handle, uint64_t address) {
  Lock lock(memory_of(s).vmm.mutex);
  uint64_t id = 0;
  if (const Mapping* mapping = memory_of(s).vmm.mappings.find(address)) {
    id = mapping->physical;
  } else {
    memory_of(s).vmm.mappings.for_each([&](uint64_t at, const Mapping& m) {
      if (address - at < m.size) id = m.physical;
    });
  }
  Physical* p = id != 0 ? memory_of(s).vmm.physicals.find(id) : nullptr;
  HandleRef* known = p != nullptr ? memory_of(s).vmm.handles.put(handle) : nullptr;
  if (known == nullptr) return;
  if (known->physical != id) *known = {id, 0};
  ++known->count;
  ++p->handles;
}

Released vmm_release_begins(State& s, uint64_t handle) {
  Lock lock(memory_of(s).vmm.mutex);
  HandleRef* known = memory_of(s).vmm.handles.find(handle);
  if (known == nullptr) return {0};
  HandleRef ref = *known;
  if (--known->count == 0) memory_of(s).vmm.handles.take(handle, &ref);
  return {ref.physical};
}

void vmm_release_failed(State& s, uint64_t handle, const Released& released) {
  if (released.physical == 0) return;
  Lock lock(memory_of(s).vmm.mutex);
  HandleRef* known = memory_of(s).vmm.handles.put(handle);
  if (known == nullptr) return;
  if (known->physical != released.physical) *known = {released.physical, 0};
  ++known->count;
}

void vmm_release_done(State& s, const Released& released, int64_t credits[GPUROTA_SLOTS]) {
  if (released.physical == 0) return;
  Lock lock(memory_of(s).vmm.mutex);
  Physical* p = memory_of(s).vmm.physicals.find(released.physical);
  if (p == nullptr) return;
  --p->handles;
  vmm_drop_if_dead(memory_of(s).vmm, released.physical, credits);
}

void vmm_unmapped(State& s, uint64_t ptr, uint64_t size, int64_t credits[GPUROTA_SLOTS]) {
  Lock lock(memory_of(s).vmm.mutex);
  for (uint64_t at = ptr; at < ptr + size;) {
    Mapping mapping{};
    if (!memory_of(s).vmm.mappings.take(at, &mapping)) {
      at += kSmallestMapping;  // made where no hook saw it
      continue;
    }
    at += mapping.size;
    Physical* p =
        mapping.physical != 0 ? memory_of(s).vmm.physicals.find(mapping.physical) : nullptr;
    if (p == nullptr) continue;
    --p->mappings;
    vmm_drop_if_dead(memory_of(s).vmm, mapping.physical, credits);
  }
}

void put_all(const int64_t credits[GPUROTA_SLOTS]) {
  for (int slot = 0; slot < GPUROTA_SLOTS; ++slot) {
    if (credits[slot] != 0) put(slot, credits[slot]);
  }
  if (memory_of(state()).vmm.ended_shared.load(std::memory_order_acquire) != 0)
    vmm_end_shared(state());
  if (memory_of(state()).vmm.ended.load(std::memory_order_acquire) != 0)
    g_swap.virtual_end(state());
}

namespace {

// The slot that memory with these properties is charged to; -1: nobody. False: refused.
bool slot_of_prop(const CUmemAllocationProp* prop, int* slot) {
  *slot = -1;
  if (prop == nullptr || prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return true;
  *slot = slot_of_device(prop->location.id);
  return *slot >= 0;
}

}  // namespace
}  // namespace gpurota::interposer

namespace interposer = gpurota::interposer;

CUresult cuMemCreate(CUmemGenericAllocationHandle* out, size_t size,
                     const CUmemAllocationProp* prop, unsigned long long flags) {
  GPUROTA_ENTER(cuMemCreate, out, size, prop, flags);
  int slot = -1;
  if (!interposer::slot_of_prop(prop, &slot)) {
    GPUROTA_DEBUG("cuMemCreate on device %d, which is not of this lease, is refused",
                  prop->location.id);
    return interposer::refuse_elsewhere();
  }
  CUresult moving = CUDA_SUCCESS;
  if (interposer::swapping() && slot >= 0 &&
      interposer::g_swap.virtual_create(*prop, slot, size, flags, out, &moving)) {
    return moving;
  }
  const int64_t bytes = size < (uint64_t{1} << 62) ? static_cast<int64_t>(size) : INT64_MAX;
  if (slot >= 0) {
    const interposer::Answer answer = interposer::reserve(slot, bytes);
    if (answer != interposer::Answer::kYes) return interposer::refuse(slot, size, answer);
  }
  const auto create = [=] { return real(out, size, prop, flags); };
  const CUresult result =
      slot >= 0 ? create() : interposer::ask_obstacle(interposer::kParkHostMemory, create);
  interposer::State& s = interposer::state();
  if (result != CUDA_SUCCESS) {
    if (slot >= 0) interposer::put(slot, bytes);
    return result;
  }
  interposer::vmm_created(s, *out, size, slot);
  if (slot >= 0) {
    interposer::count(&s.slots[slot].allocations);
    s.mirror(slot);
  }
  return result;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  GPUROTA_ENTER(cuMemRelease, handle);
  interposer::State& s = interposer::state();
  const interposer::Released released = interposer::vmm_release_begins(s, handle);
  CUresult result = CUDA_SUCCESS;
  if (!interposer::is_virtual(handle)) {
    result = real(handle);
  } else if (released.physical == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (result != CUDA_SUCCESS) {
    interposer::vmm_release_failed(s, handle, released);
    return result;
  }
  int64_t credits[GPUROTA_SLOTS] = {};
  interposer::vmm_release_done(s, released, credits);
  interposer::put_all(credits);
  return result;
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  GPUROTA_ENTER(cuMemMap, ptr, size, offset, handle, flags);
  interposer::State& s = interposer::state();
  if (interposer::is_virtual(handle)) {
    return interposer::g_swap.virtual_map(s, {ptr, size}, offset, handle, flags);
  }
  if (interposer::virtual_any(s, {ptr, size})) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = real(ptr, size, offset, handle, flags);
  if (result == CUDA_SUCCESS) interposer::vmm_mapped(s, ptr, size, handle);
  return result;
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size) {
  GPUROTA_ENTER(cuMemUnmap, ptr, size);
  const auto unmap = [real](uint64_t at, uint64_t bytes) {
    const CUresult result = real(at, bytes);
    if (result != CUDA_SUCCESS) return result;
    int64_t credits[GPUROTA_SLOTS] = {};
    interposer::vmm_unmapped(interposer::state(), at, bytes, credits);
    interposer::put_all(credits);
    return result;
  };
  interposer::State& s = interposer::state();
  if (!interposer::virtual_any(s, {ptr, size})) return unmap(ptr, size);
  return interposer::virtual_unmap_all(s, {ptr, size}, unmap);
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* out, void* address) {
  GPUROTA_ENTER(cuMemRetainAllocationHandle, out, address);
  if (interposer::swapping() &&
      interposer::g_swap.moves(interposer::state(), reinterpret_cast<uint64_t>(address))) {
    return CUDA_ERROR_INVALID_VALUE;  // as for memory from cuMemAlloc
  }
  CUresult result = CUDA_SUCCESS;
  if (interposer::virtual_retain(interposer::state(), reinterpret_cast<uint64_t>(address), out,
                                 &result)) {
    return result;
  }
  result = real(out, address);
  if (result == CUDA_SUCCESS) {
    interposer::vmm_retained(interposer::state(), *out, reinterpret_cast<uint64_t>(address));
  }
  return result;
}
