// Memory made by cuMemCreate that is exported to other processes as a descriptor, or imported from
// them.
#include "interposer/account/device.h"
#include "interposer/driver/driver.h"
#include "interposer/driver/own_calls.h"
#include "interposer/gate/gated.h"
#include "interposer/memory/imports.h"
#include "interposer/memory/linear.h"
#include "interposer/memory/reserve.h"
#include "interposer/memory/virtual_handles.h"
#include "interposer/memory/vmm.h"
#include "interposer/os/debug.h"

namespace gpurota::interposer {
namespace {

// Counts one more reference by a handle that this process has already. False: the handle is not
// known.
bool note_again(State& s, uint64_t handle) {
  Lock lock(memory_of(s).vmm.mutex);
  HandleRef* known = memory_of(s).vmm.handles.find(handle);
  Physical* p = known != nullptr ? memory_of(s).vmm.physicals.find(known->physical) : nullptr;
  if (p == nullptr) return false;
  ++known->count;
  ++p->handles;
  return true;
}

// Finds the size of a handle's memory by mapping it, as no function tells the size and the driver
// maps no more than there is. A size beyond the lease's limit is returned as just above the limit.
// 0: nothing can be mapped.
uint64_t size_by_mapping(State& s, int slot, uint64_t handle) {
  const gpurota_page* page = s.page.load(std::memory_order_acquire);
  const uint64_t limit = __atomic_load_n(&page->grant[slot].limit_bytes, __ATOMIC_RELAXED);
  const uint64_t most = limit / kBlockBytes + 1;
  CUdeviceptr at = 0;
  if (GPUROTA_OWN(cuMemAddressReserve)(&at, most * kBlockBytes, 0, 0, 0) != CUDA_SUCCESS) return 0;
  const auto fits = [=](uint64_t blocks) {
    if (GPUROTA_OWN(cuMemMap)(at, blocks * kBlockBytes, 0, handle, 0) != CUDA_SUCCESS) {
      return false;
    }
    GPUROTA_OWN(cuMemUnmap)(at, blocks * kBlockBytes);
    return true;
  };
  uint64_t known = 0;
  uint64_t next = 1;
  while (next < most && fits(next)) {
    known = next;
    next *= 2;
  }
  if (next > most) next = most;
  uint64_t too_many = next;
  if (next == most && fits(most)) {
    known = most;
    too_many = most + 1;
  }
  while (too_many - known > 1) {
    const uint64_t middle = known + (too_many - known) / 2;
    (fits(middle) ? known : too_many) = middle;
  }
  GPUROTA_OWN(cuMemAddressFree)(at, most * kBlockBytes);
  return known * kBlockBytes;
}

// -1: memory of the host, or of a GPU that is not of the lease.
int slot_of_handle(uint64_t handle) {
  CUmemAllocationProp prop{};
  const bool known =
      GPUROTA_OWN(cuMemGetAllocationPropertiesFromHandle)(&prop, handle) == CUDA_SUCCESS;
  if (!known || prop.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return -1;
  return slot_of_device(prop.location.id);
}

}  // namespace

CUresult vmm_imported(State& s, uint64_t handle, uint64_t key) {
  if (note_again(s, handle)) return CUDA_SUCCESS;
  const int slot = slot_of_handle(handle);
  if (slot < 0) return CUDA_SUCCESS;
  Import import{};
  import.key = key;
  import.slot = static_cast<int16_t>(slot);
  if (!charge_import_of(&import, [&] { return size_by_mapping(s, slot, handle); })) {
    GPUROTA_OWN(cuMemRelease)(handle);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (import.bytes == 0) {
    GPUROTA_DEBUG("slot %d: memory of a size that the driver does not tell is imported", slot);
    return CUDA_SUCCESS;
  }
  vmm_created(s, handle, import.bytes, slot);
  Lock lock(memory_of(s).vmm.mutex);
  Physical* p = physical_of(memory_of(s).vmm, handle);
  if (p == nullptr) return CUDA_SUCCESS;  // stays charged
  p->imported = import.kind;
  p->key = key;
  return CUDA_SUCCESS;
}

// All descriptors of one piece of memory get the same key.
void vmm_exported(State& s, uint64_t handle, int fd) {
  uint64_t key = 0;
  uint64_t size = 0;
  int slot = -1;
  bool is_first = false;
  const uint64_t fresh = new_key();
  {
    Lock lock(memory_of(s).vmm.mutex);
    Physical* p = physical_of(memory_of(s).vmm, handle);
    if (p == nullptr || p->slot < 0) return;
    if (p->key == 0 && (fresh == 0 || !put_key(fd, fresh))) return;
    is_first = p->key == 0;
    if (is_first) p->key = fresh;
    key = p->key;
    size = p->size;
    slot = p->slot;
  }
  if (is_first) {
    hold_memory(slot, key, size);
  } else {
    put_key(fd, key);
  }
}

void vmm_mark_shared_ended(Vmm& v, uint64_t id) {
  Physical* p = v.physicals.find(id);
  if (p == nullptr) return;
  p->next_ended = v.ended_shared.load(std::memory_order_relaxed);
  v.ended_shared.store(id, std::memory_order_release);
}

void vmm_end_shared(State& s) {
  Vmm& v = memory_of(s).vmm;
  while (v.ended_shared.load(std::memory_order_acquire) != 0) {
    Physical gone{};
    {
      Lock lock(v.mutex);
      const uint64_t id = v.ended_shared.load();
      if (id == 0 || !v.physicals.take(id, &gone)) return;
      v.ended_shared.store(gone.next_ended);
    }
    if (gone.imported != ImportKind::kNone) {
      end_import({gone.key, gone.size, 0, 1, static_cast<int16_t>(gone.slot), gone.imported});
      continue;
    }
    if (swapping()) put(gone.slot, static_cast<int64_t>(gone.size));
    leave_memory(gone.slot, gone.key, gone.size, swapping() ? Left::kCredited : Left::kCharged);
  }
}

}  // namespace gpurota::interposer

namespace interposer = gpurota::interposer;

// Wires the memory first: a process that imports it maps memory that this process cannot take away.
CUresult cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
  GPUROTA_ENTER(cuMemExportToShareableHandle, out, handle, type, flags);
  CUmemGenericAllocationHandle wired = handle;
  if (interposer::is_virtual(handle)) {
    const CUresult stays =
        interposer::g_swap.virtual_export(interposer::state(), handle, type, &wired);
    if (stays != CUDA_SUCCESS) return stays;
  }
  const CUresult result = interposer::gated(interposer::GateClass::kResidency, nullptr, false,
                                            [=] { return real(out, wired, type, flags); });
  if (result == CUDA_SUCCESS && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    interposer::vmm_exported(interposer::state(), handle, *static_cast<int*>(out));
  }
  return result;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* out, void* os_handle,
                                        CUmemAllocationHandleType type) {
  GPUROTA_ENTER(cuMemImportFromShareableHandle, out, os_handle, type);
  if (out == nullptr) return real(out, os_handle, type);
  CUmemGenericAllocationHandle imported = 0;
  CUresult result = interposer::ask_obstacle(interposer::kParkImports,
                                             [&] { return real(&imported, os_handle, type); });
  if (result != CUDA_SUCCESS) return result;
  const bool is_descriptor = type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  const auto fd = static_cast<int>(reinterpret_cast<intptr_t>(os_handle));
  result = interposer::vmm_imported(interposer::state(), imported,
                                    is_descriptor ? interposer::key_of_descriptor(fd) : 0);
  if (result == CUDA_SUCCESS) *out = imported;
  return result;
}
