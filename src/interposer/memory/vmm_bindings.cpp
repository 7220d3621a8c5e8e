// Memory that is held by something other than a handle or an address: bound to a multicast object,
// or mapped as a part of a sparse array. Such memory lives until it is unbound or its owner is
// gone.
#include "interposer/account/device.h"
#include "interposer/account/swap_table.h"
#include "interposer/driver/driver.h"
#include "interposer/gate/gated.h"
#include "interposer/memory/virtual_handles.h"
#include "interposer/memory/vmm.h"

namespace gpurota::interposer {
namespace {

uint64_t key_of(const Binding& binding) {
  const uint64_t key = mix_key(mix_key(binding.owner ^ mix_key(binding.offset)) + binding.physical);
  return key != 0 ? key : 1;
}

// Two equal bindings share one entry, so memory bound twice in the same way stays charged. Under
// Vmm::mutex.
void bind(Vmm& v, const Binding& binding) {
  Physical* p = v.physicals.find(binding.physical);
  if (p == nullptr) return;
  ++p->mappings;
  Binding* entry = v.bindings.put(key_of(binding));
  if (entry != nullptr && entry->physical == 0) *entry = binding;
}

template <typename Test>
void unbind_if(Vmm& v, Test test, int64_t credits[GPUROTA_SLOTS]) {
  if (v.bindings.size() == 0) return;
  v.bindings.remove_if(test, [&](uint64_t, const Binding& binding) {
    Physical* p = v.physicals.find(binding.physical);
    if (p == nullptr) return;
    --p->mappings;
    vmm_drop_if_dead(v, binding.physical, credits);
  });
}

uint64_t hash_of_part(const CUarrayMapInfo& info) {
  uint64_t hash = mix_key(static_cast<uint64_t>(info.subresourceType) + 1);
  if (info.subresourceType == 0) {  // a tile of a level; else the tail of small levels
    const auto& at = info.subresource.sparseLevel;
    for (const unsigned value : {at.level, at.layer, at.offsetX, at.offsetY, at.offsetZ,
                                 at.extentWidth, at.extentHeight, at.extentDepth}) {
      hash = mix_key(hash + value + 1);
    }
  } else {
    const auto& at = info.subresource.miptail;
    hash = mix_key(mix_key(mix_key(hash + at.layer + 1) + at.offset) + at.size);
  }
  return hash;
}

void note_array_parts(State& s, const CUarrayMapInfo* list, unsigned count) {
  int64_t credits[GPUROTA_SLOTS] = {};
  for (unsigned i = 0; i < count; ++i) {
    const auto owner = reinterpret_cast<uint64_t>(list[i].resource.array);
    const uint64_t part = hash_of_part(list[i]);
    vmm_unbound(s, owner, part, 1, -1, credits);
    if (list[i].memOperationType != CU_MEM_OPERATION_TYPE_MAP) continue;
    vmm_bound(s, owner, part, list[i].memHandle.memHandle);
  }
  put_all(credits);
}

template <typename Real>
CUresult map_array(CUarrayMapInfo* list, unsigned count, CUstream stream, bool per_thread,
                   Real real) {
  for (unsigned i = 0; list != nullptr && i < count; ++i) {
    const bool maps = list[i].memOperationType == CU_MEM_OPERATION_TYPE_MAP;
    // Memory that moves was not made to be mapped into arrays.
    if (maps && is_virtual(list[i].memHandle.memHandle)) return CUDA_ERROR_INVALID_VALUE;
  }
  const CUresult result =
      gated(GateClass::kSubmits, stream, per_thread, [=] { return real(list, count, stream); });
  if (result == CUDA_SUCCESS && list != nullptr) note_array_parts(state(), list, count);
  return result;
}

}  // namespace

void vmm_drop_if_dead(Vmm& v, uint64_t id, int64_t credits[GPUROTA_SLOTS]) {
  const Physical* p = v.physicals.find(id);
  if (p == nullptr || p->handles != 0 || p->mappings != 0) return;
  Physical dead{};
  if (p->home != 0) {  // ended by put_all(), without the lock
    virtual_mark_ended(v, id);
    return;
  }
  if (p->key != 0 || p->imported != ImportKind::kNone) {
    vmm_mark_shared_ended(v, id);
    return;
  }
  v.physicals.take(id, &dead);
  if (dead.slot >= 0) credits[dead.slot] += static_cast<int64_t>(dead.size);
  if (dead.owns)
    unbind_if(
        v, [id](const Binding& b) { return b.owner == id; }, credits);
}

void vmm_multicast_created(State& s, uint64_t handle) {
  vmm_created(s, handle, 0, -1);
  Lock lock(memory_of(s).vmm.mutex);
  Physical* p = physical_of(memory_of(s).vmm, handle);
  if (p != nullptr) p->owns = true;
}

uint64_t vmm_id(State& s, uint64_t handle) {
  Lock lock(memory_of(s).vmm.mutex);
  const HandleRef* known = memory_of(s).vmm.handles.find(handle);
  return known != nullptr ? known->physical : 0;
}

void vmm_bound(State& s, uint64_t owner, uint64_t offset, uint64_t handle) {
  Lock lock(memory_of(s).vmm.mutex);
  const HandleRef* known = memory_of(s).vmm.handles.find(handle);
  if (known != nullptr) bind(memory_of(s).vmm, {owner, offset, known->physical});
}

void vmm_bound_range(State& s, uint64_t owner, uint64_t offset, uint64_t ptr, uint64_t size) {
  Lock lock(memory_of(s).vmm.mutex);
  memory_of(s).vmm.mappings.for_each([&](uint64_t at, const Mapping& mapping) {
    if (at >= ptr + size || at + mapping.size <= ptr || mapping.physical == 0) return;
    bind(memory_of(s).vmm, {owner, offset + (at > ptr ? at - ptr : 0), mapping.physical});
  });
}

void vmm_unbound(State& s, uint64_t owner, uint64_t offset, uint64_t size, int slot,
                 int64_t credits[GPUROTA_SLOTS]) {
  Lock lock(memory_of(s).vmm.mutex);
  const auto test = [&](const Binding& b) {
    if (b.owner != owner || b.offset - offset >= size) return false;
    const Physical* p = memory_of(s).vmm.physicals.find(b.physical);
    return slot < 0 || p == nullptr || p->slot == slot;
  };
  unbind_if(memory_of(s).vmm, test, credits);
}

void vmm_owner_gone(State& s, uint64_t owner, int64_t credits[GPUROTA_SLOTS]) {
  Lock lock(memory_of(s).vmm.mutex);
  unbind_if(
      memory_of(s).vmm, [owner](const Binding& b) { return b.owner == owner; }, credits);
}

}  // namespace gpurota::interposer

namespace interposer = gpurota::interposer;

// A multicast object's own memory is a few pages of tables; only memory bound to it counts.
CUresult cuMulticastCreate(CUmemGenericAllocationHandle* out, const CUmulticastObjectProp* prop) {
  GPUROTA_ENTER(cuMulticastCreate, out, prop);
  const CUresult result = real(out, prop);
  if (result == CUDA_SUCCESS) interposer::vmm_multicast_created(interposer::state(), *out);
  return result;
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle multicast, size_t offset,
                            CUmemGenericAllocationHandle memory, size_t memory_offset, size_t size,
                            unsigned long long flags) {
  GPUROTA_ENTER(cuMulticastBindMem, multicast, offset, memory, memory_offset, size, flags);
  interposer::State& s = interposer::state();
  CUmemGenericAllocationHandle wired = memory;
  if (interposer::is_virtual(memory)) {
    const CUresult stays = interposer::g_swap.virtual_wire(s, memory, &wired);
    if (stays != CUDA_SUCCESS) return stays;
  }
  const CUresult result = interposer::gated(interposer::GateClass::kResidency, nullptr, false, [=] {
    return real(multicast, offset, wired, memory_offset, size, flags);
  });
  const uint64_t owner = result == CUDA_SUCCESS ? interposer::vmm_id(s, multicast) : 0;
  if (owner != 0) interposer::vmm_bound(s, owner, offset, memory);
  return result;
}

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle multicast, size_t offset,
                             CUdeviceptr memory, size_t size, unsigned long long flags) {
  GPUROTA_ENTER(cuMulticastBindAddr, multicast, offset, memory, size, flags);
  if (interposer::swapping() && interposer::g_swap.moves(interposer::state(), memory)) {
    return CUDA_ERROR_INVALID_VALUE;  // as for any memory that is not the program's own mapping
  }
  if (interposer::virtual_any(interposer::state(), {memory, size})) {
    const CUresult stays =
        interposer::g_swap.virtual_wire_range(interposer::state(), {memory, size});
    if (stays != CUDA_SUCCESS) return stays;
  }
  const CUresult result = interposer::gated(interposer::GateClass::kResidency, nullptr, false, [=] {
    return real(multicast, offset, memory, size, flags);
  });
  interposer::State& s = interposer::state();
  const uint64_t owner = result == CUDA_SUCCESS ? interposer::vmm_id(s, multicast) : 0;
  if (owner != 0) interposer::vmm_bound_range(s, owner, offset, memory, size);
  return result;
}

CUresult cuMulticastUnbind(CUmemGenericAllocationHandle multicast, CUdevice device, size_t offset,
                           size_t size) {
  GPUROTA_ENTER(cuMulticastUnbind, multicast, device, offset, size);
  interposer::State& s = interposer::state();
  const uint64_t owner = interposer::vmm_id(s, multicast);
  const CUresult result = real(multicast, device, offset, size);
  if (result != CUDA_SUCCESS || owner == 0) return result;
  int64_t credits[GPUROTA_SLOTS] = {};
  interposer::vmm_unbound(s, owner, offset, size, interposer::slot_of_device(device), credits);
  interposer::put_all(credits);
  return result;
}

CUresult cuMemMapArrayAsync(CUarrayMapInfo* list, unsigned int count, CUstream stream) {
  GPUROTA_ENTER(cuMemMapArrayAsync, list, count, stream);
  return interposer::map_array(list, count, stream, false, real);
}

CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo* list, unsigned int count, CUstream stream) {
  GPUROTA_ENTER(cuMemMapArrayAsync_ptsz, list, count, stream);
  return interposer::map_array(list, count, stream, true, real);
}
