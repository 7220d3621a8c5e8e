#include "interposer/vmm.h"

#include "interposer/debug.h"
#include "interposer/device.h"
#include "interposer/driver.h"
#include "interposer/ledger.h"

namespace gpurota::interposer {
namespace {

constexpr uint64_t kSmallestMapping = uint64_t{64} << 10;

}  // namespace

void vmm_created(State& s, uint64_t handle, uint64_t size, int slot) {
  Lock lock(s.vmm.mutex);
  const uint64_t id = ++s.vmm.last_id;
  Physical* p = s.vmm.physicals.put(id);
  uint64_t* known = s.vmm.handles.put(handle);
  if (p == nullptr || known == nullptr) return;  // stays charged
  *p = {size, handle, 1, 0, slot, false};
  *known = id;
}

void vmm_imported(State& s, uint64_t handle) {
  Lock lock(s.vmm.mutex);
  const uint64_t* id = s.vmm.handles.find(handle);
  Physical* p = id != nullptr ? s.vmm.physicals.find(*id) : nullptr;
  if (p != nullptr) ++p->handles;  // its own export come home under the same number
}

void vmm_mapped(State& s, uint64_t ptr, uint64_t size, uint64_t handle) {
  Lock lock(s.vmm.mutex);
  const uint64_t* id = s.vmm.handles.find(handle);
  Physical* p = id != nullptr ? s.vmm.physicals.find(*id) : nullptr;
  Mapping* mapping = s.vmm.mappings.put(ptr);
  if (mapping == nullptr) {
    if (p != nullptr) ++p->mappings;  // never credited, as its end will not be seen
    return;
  }
  *mapping = {size, p != nullptr ? *id : 0};
  if (p != nullptr) ++p->mappings;
}

void vmm_retained(State& s, uint64_t handle) {
  Lock lock(s.vmm.mutex);
  if (const uint64_t* id = s.vmm.handles.find(handle)) {
    if (Physical* p = s.vmm.physicals.find(*id)) ++p->handles;
    return;
  }
  // All handles were released and only mappings were left; the driver gives the old number again.
  uint64_t found = 0;
  s.vmm.physicals.for_each([&](uint64_t id, const Physical& p) {
    if (p.handle == handle && p.handles == 0) found = id;
  });
  uint64_t* known = found != 0 ? s.vmm.handles.put(handle) : nullptr;
  if (known == nullptr) return;
  *known = found;
  s.vmm.physicals.find(found)->handles = 1;
}

Released vmm_release_begins(State& s, uint64_t handle) {
  Lock lock(s.vmm.mutex);
  const uint64_t* known = s.vmm.handles.find(handle);
  if (known == nullptr) return {0, false};
  const uint64_t id = *known;
  Physical* p = s.vmm.physicals.find(id);
  if (p == nullptr) return {0, false};
  const bool last = --p->handles == 0;
  uint64_t ignored = 0;
  if (last) s.vmm.handles.take(handle, &ignored);
  return {id, last};
}

void vmm_release_failed(State& s, uint64_t handle, const Released& released) {
  if (released.physical == 0) return;
  Lock lock(s.vmm.mutex);
  Physical* p = s.vmm.physicals.find(released.physical);
  if (p == nullptr) return;
  ++p->handles;
  uint64_t* known = released.last_handle ? s.vmm.handles.put(handle) : nullptr;
  if (known != nullptr) *known = released.physical;
}

void vmm_release_done(State& s, const Released& released, int64_t credits[GPUROTA_SLOTS]) {
  if (!released.last_handle) return;
  Lock lock(s.vmm.mutex);
  vmm_drop_if_dead(s.vmm, released.physical, credits);
}

void vmm_unmapped(State& s, uint64_t ptr, uint64_t size, int64_t credits[GPUROTA_SLOTS]) {
  Lock lock(s.vmm.mutex);
  for (uint64_t at = ptr; at < ptr + size;) {
    Mapping mapping{};
    if (!s.vmm.mappings.take(at, &mapping)) {
      at += kSmallestMapping;  // made where no hook saw it
      continue;
    }
    at += mapping.size;
    Physical* p = mapping.physical != 0 ? s.vmm.physicals.find(mapping.physical) : nullptr;
    if (p == nullptr) continue;
    --p->mappings;
    vmm_drop_if_dead(s.vmm, mapping.physical, credits);
  }
}

void put_all(const int64_t credits[GPUROTA_SLOTS]) {
  for (int slot = 0; slot < GPUROTA_SLOTS; ++slot) {
    if (credits[slot] != 0) put(slot, credits[slot]);
  }
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
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const int64_t bytes = size < (uint64_t{1} << 62) ? static_cast<int64_t>(size) : INT64_MAX;
  if (slot >= 0 && !interposer::reserve(slot, bytes)) return interposer::refuse(slot, size);
  const CUresult result = real(out, size, prop, flags);
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
  const CUresult result = real(handle);
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
  const CUresult result = real(ptr, size, offset, handle, flags);
  if (result == CUDA_SUCCESS) interposer::vmm_mapped(interposer::state(), ptr, size, handle);
  return result;
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size) {
  GPUROTA_ENTER(cuMemUnmap, ptr, size);
  const CUresult result = real(ptr, size);
  if (result != CUDA_SUCCESS) return result;
  int64_t credits[GPUROTA_SLOTS] = {};
  interposer::vmm_unmapped(interposer::state(), ptr, size, credits);
  interposer::put_all(credits);
  return result;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* out, void* address) {
  GPUROTA_ENTER(cuMemRetainAllocationHandle, out, address);
  const CUresult result = real(out, address);
  if (result == CUDA_SUCCESS) interposer::vmm_retained(interposer::state(), *out);
  return result;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* out, void* os_handle,
                                        CUmemAllocationHandleType type) {
  GPUROTA_ENTER(cuMemImportFromShareableHandle, out, os_handle, type);
  const CUresult result = real(out, os_handle, type);
  if (result == CUDA_SUCCESS) interposer::vmm_imported(interposer::state(), *out);
  return result;
}
