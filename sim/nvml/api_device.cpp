// NVML: properties of a device: name, location, architecture, modes, MIG.
#include "sim/nvml/nvml.h"

#include <cstdio>
#include <cstring>

using gpurota::sim::DeviceConfig;
using gpurota::sim::nvml_handle;
using gpurota::sim::nvml_text;
using gpurota::sim::NvmlDevice;

namespace {

// Answers one number that `read` takes from the device.
template <class Out, class Read>
nvmlReturn_t number(nvmlDevice_t handle, Out* out, const Read& read) {
  const NvmlDevice device(handle);
  if (device.failed()) return device.error();
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *out = static_cast<Out>(read(device));
  return NVML_SUCCESS;
}

// Like number(), but for what a MIG instance does not have of its own: fails with
// NVML_ERROR_NOT_SUPPORTED for an instance.
template <class Out, class Read>
nvmlReturn_t board_number(nvmlDevice_t handle, Out* out, const Read& read) {
  const NvmlDevice device(handle);
  if (!device.failed() && device.is_instance()) return NVML_ERROR_NOT_SUPPORTED;
  return number(handle, out, read);
}

int index_of(const NvmlDevice& device) {
  const int board = device.is_instance() ? device.config().parent : device.index();
  const auto gpus = gpurota::sim::nvml_gpus(device.machine());
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (gpus[i] == board) return static_cast<int>(i);
  }
  return 0;
}

}  // namespace

GPUROTA_SIM_NVML nvmlDeviceGetName(nvmlDevice_t handle, char* out, unsigned length) {
  const NvmlDevice device(handle);
  return device.failed() ? device.error() : nvml_text(device.config().name, out, length);
}

GPUROTA_SIM_NVML nvmlDeviceGetUUID(nvmlDevice_t handle, char* out, unsigned length) {
  const NvmlDevice device(handle);
  return device.failed() ? device.error() : nvml_text(device.config().uuid, out, length);
}

GPUROTA_SIM_NVML nvmlDeviceGetSerial(nvmlDevice_t handle, char* out, unsigned length) {
  const NvmlDevice device(handle);
  if (device.failed()) return device.error();
  char text[32];
  std::snprintf(text, sizeof text, "1%012u", static_cast<unsigned>(index_of(device)));
  return nvml_text(text, out, length);
}

GPUROTA_SIM_NVML nvmlDeviceGetIndex(nvmlDevice_t handle, unsigned* out) {
  return board_number(handle, out, index_of);
}

GPUROTA_SIM_NVML nvmlDeviceGetMinorNumber(nvmlDevice_t handle, unsigned* out) {
  const NvmlDevice device(handle);
  if (!device.failed() && device.config().has_pci == 0) return NVML_ERROR_NOT_SUPPORTED;
  return board_number(handle, out, index_of);
}

GPUROTA_SIM_NVML nvmlDeviceGetPciInfo_v3(nvmlDevice_t handle, nvmlPciInfo_t* out) {
  const NvmlDevice device(handle);
  if (device.failed()) return device.error();
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const DeviceConfig& gpu = device.config();
  if (gpu.has_pci == 0) return NVML_ERROR_NOT_SUPPORTED;
  *out = {};
  std::snprintf(out->busIdLegacy, sizeof out->busIdLegacy, "%04X:%02X:%02X.0",
                gpu.pci_domain & 0xffffU, gpu.pci_bus & 0xffU, gpu.pci_device & 0xffU);
  std::snprintf(out->busId, sizeof out->busId, "%08X:%02X:%02X.0", gpu.pci_domain, gpu.pci_bus,
                gpu.pci_device);
  out->domain = gpu.pci_domain;
  out->bus = gpu.pci_bus;
  out->device = gpu.pci_device;
  out->pciDeviceId = gpu.pci_device_id;
  out->pciSubSystemId = gpu.pci_subsystem_id;
  return NVML_SUCCESS;
}

GPUROTA_SIM_NVML nvmlDeviceGetPciInfo_v2(nvmlDevice_t handle, nvmlPciInfo_v2_t* out) {
  nvmlPciInfo_t info = {};
  const nvmlReturn_t result = nvmlDeviceGetPciInfo_v3(handle, &info);
  if (result != NVML_SUCCESS) return result;
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *out = {};
  std::memcpy(out->busId, info.busIdLegacy, sizeof out->busId);
  out->domain = info.domain;
  out->bus = info.bus;
  out->device = info.device;
  out->pciDeviceId = info.pciDeviceId;
  out->pciSubSystemId = info.pciSubSystemId;
  return NVML_SUCCESS;
}

GPUROTA_SIM_NVML nvmlDeviceGetPciInfo(nvmlDevice_t handle, nvmlPciInfo_v2_t* out) {
  return nvmlDeviceGetPciInfo_v2(handle, out);
}

GPUROTA_SIM_NVML nvmlDeviceGetArchitecture(nvmlDevice_t handle, unsigned* out) {
  return number(handle, out, [](const NvmlDevice& d) { return d.config().architecture; });
}

GPUROTA_SIM_NVML nvmlDeviceGetCudaComputeCapability(nvmlDevice_t handle, int* major, int* minor) {
  if (major == nullptr || minor == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  (void)number(handle, major, [](const NvmlDevice& d) { return d.config().capability_major; });
  return number(handle, minor, [](const NvmlDevice& d) { return d.config().capability_minor; });
}

GPUROTA_SIM_NVML nvmlDeviceGetComputeMode(nvmlDevice_t handle, nvmlComputeMode_t* out) {
  return number(handle, out, [](const NvmlDevice& d) { return d.config().compute_mode; });
}

GPUROTA_SIM_NVML nvmlDeviceGetPersistenceMode(nvmlDevice_t handle, nvmlEnableState_t* out) {
  return board_number(handle, out, [](const NvmlDevice& d) { return d.config().persistence; });
}

GPUROTA_SIM_NVML nvmlDeviceGetDisplayActive(nvmlDevice_t handle, nvmlEnableState_t* out) {
  return board_number(handle, out, [](const NvmlDevice&) { return NVML_FEATURE_DISABLED; });
}

GPUROTA_SIM_NVML nvmlDeviceGetDisplayMode(nvmlDevice_t handle, nvmlEnableState_t* out) {
  return nvmlDeviceGetDisplayActive(handle, out);
}

GPUROTA_SIM_NVML nvmlDeviceGetEccMode(nvmlDevice_t handle, nvmlEnableState_t* current,
                                      nvmlEnableState_t* pending) {
  if (pending == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const auto read = [](const NvmlDevice& d) { return d.config().ecc; };
  (void)number(handle, pending, read);
  return number(handle, current, read);
}

GPUROTA_SIM_NVML nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b, int* level) {
  const NvmlDevice first(a), second(b);
  if (first.failed() || second.failed()) return first.failed() ? first.error() : second.error();
  if (level == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const bool one_node = first.config().numa_node == second.config().numa_node;
  *level = first.index() == second.index() ? NVML_TOPOLOGY_INTERNAL
           : one_node                      ? NVML_TOPOLOGY_NODE
                                           : NVML_TOPOLOGY_SYSTEM;
  return NVML_SUCCESS;
}

GPUROTA_SIM_NVML nvmlDeviceGetP2PStatus(nvmlDevice_t a, nvmlDevice_t b, int way, int* status) {
  const NvmlDevice first(a), second(b);
  if (first.failed() || second.failed()) return first.failed() ? first.error() : second.error();
  if (status == nullptr || first.is_instance() || second.is_instance()) {
    return NVML_ERROR_INVALID_ARGUMENT;
  }
  const DeviceConfig& one = first.config();
  const DeviceConfig& other = second.config();
  const bool joined = one.nvlink_group != 0 && one.nvlink_group == other.nvlink_group;
  const bool peers = one.peer_access != 0 && other.peer_access != 0;
  *status = (way == NVML_P2P_CAPS_INDEX_NVLINK ? joined : peers) ? NVML_P2P_STATUS_OK
                                                                 : NVML_P2P_STATUS_NOT_SUPPORTED;
  return NVML_SUCCESS;
}

GPUROTA_SIM_NVML nvmlDeviceGetMigMode(nvmlDevice_t handle, unsigned* current, unsigned* pending) {
  const NvmlDevice device(handle);
  if (device.failed()) return device.error();
  if (current == nullptr || pending == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const DeviceConfig& gpu = device.config();
  const bool can =
      gpu.capability_major == 9 || (gpu.capability_major == 8 && gpu.capability_minor == 0);
  if (!can || device.is_instance()) return NVML_ERROR_NOT_SUPPORTED;
  *current = *pending = static_cast<unsigned>(gpu.mig_enabled);
  return NVML_SUCCESS;
}

GPUROTA_SIM_NVML nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t handle, unsigned* out) {
  return board_number(handle, out, [](const NvmlDevice& d) {
    return d.config().capability_major >= 8 && d.config().ecc != 0 ? 7 : 0;
  });
}

GPUROTA_SIM_NVML nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t handle, unsigned position,
                                                     nvmlDevice_t* out) {
  const NvmlDevice device(handle);
  if (device.failed()) return device.error();
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  for (int i = 0; i < device.machine().state().device_count; ++i) {
    const DeviceConfig& other = device.machine().config(i);
    if (other.parent != device.index() || other.mig_position != position) continue;
    *out = nvml_handle(i);
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

GPUROTA_SIM_NVML nvmlDeviceIsMigDeviceHandle(nvmlDevice_t handle, unsigned* out) {
  return number(handle, out, [](const NvmlDevice& d) { return d.is_instance() ? 1 : 0; });
}

GPUROTA_SIM_NVML nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t handle,
                                                              nvmlDevice_t* out) {
  const NvmlDevice device(handle);
  if (device.failed()) return device.error();
  if (out == nullptr || !device.is_instance()) return NVML_ERROR_INVALID_ARGUMENT;
  *out = nvml_handle(device.config().parent);
  return NVML_SUCCESS;
}

GPUROTA_SIM_NVML nvmlDeviceGetGpuInstanceId(nvmlDevice_t handle, unsigned* out) {
  const NvmlDevice device(handle);
  if (!device.failed() && !device.is_instance()) return NVML_ERROR_NOT_FOUND;
  return number(handle, out, [](const NvmlDevice& d) { return d.config().gpu_instance; });
}

GPUROTA_SIM_NVML nvmlDeviceGetComputeInstanceId(nvmlDevice_t handle, unsigned* out) {
  const NvmlDevice device(handle);
  if (!device.failed() && !device.is_instance()) return NVML_ERROR_NOT_FOUND;
  return number(handle, out, [](const NvmlDevice& d) { return d.config().compute_instance; });
}

GPUROTA_SIM_NVML nvmlDeviceGetAttributes_v2(nvmlDevice_t handle, nvmlDeviceAttributes_t* out) {
  const NvmlDevice device(handle);
  if (device.failed()) return device.error();
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (!device.is_instance()) return NVML_ERROR_NOT_SUPPORTED;
  *out = {};
  out->multiprocessorCount = static_cast<unsigned>(device.config().multiprocessors);
  out->memorySizeMB = device.config().memory_bytes >> 20;
  return NVML_SUCCESS;
}
