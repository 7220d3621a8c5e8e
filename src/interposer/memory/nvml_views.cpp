// NVML's memory figures for a GPU of the lease: those of cuMemGetInfo, so that all views agree.
#include "interposer/account/nvml.h"
#include "interposer/memory/memory_view.h"

using gpurota::interposer::MemoryView;
using gpurota::interposer::slot_of_nvml_device;
using gpurota::interposer::view_of_slot;

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* out) {
  GPUROTA_NVML_ENTER(nvmlDeviceGetMemoryInfo, device, out);
  const nvmlReturn_t result = real(device, out);
  if (result != NVML_SUCCESS || out == nullptr) return result;
  const int slot = slot_of_nvml_device(device);
  if (slot < 0) return result;
  const MemoryView view = view_of_slot(slot, out->total, out->free);
  *out = {view.total, view.free, view.total - view.free};
  return result;
}

// The memory that the driver keeps for itself is not part of the slice.
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* out) {
  GPUROTA_NVML_ENTER(nvmlDeviceGetMemoryInfo_v2, device, out);
  const nvmlReturn_t result = real(device, out);
  if (result != NVML_SUCCESS || out == nullptr || out->version != NVML_MEMORY_V2) return result;
  const int slot = slot_of_nvml_device(device);
  if (slot < 0) return result;
  const MemoryView view = view_of_slot(slot, out->total, out->free);
  *out = {out->version, view.total, 0, view.free, view.total - view.free};
  return result;
}
