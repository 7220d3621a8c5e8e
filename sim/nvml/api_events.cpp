// NVML: event sets. The only simulated events are Xid errors (gpurota-sim set gpuN.xid=79); each
// set reports each error once.
#include "sim/nvml/nvml.h"

#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

using gpurota::sim::NvmlDevice;

// For each registered GPU: the number of errors when the last one was reported.
struct nvmlEventSet_st {
  struct Registered {
    nvmlDevice_t handle = nullptr;
    unsigned reported = 0;
  };
  std::mutex mutex;
  std::vector<Registered> gpus;
};

namespace {

bool take_event(nvmlEventSet_st& set, nvmlEventData_t& event) {
  const std::lock_guard lock(set.mutex);
  for (auto& [handle, reported] : set.gpus) {
    const NvmlDevice device(handle);
    if (device.failed()) continue;
    const auto& faults = device.machine().faults(device.index());
    if (faults.xid_count.load() == reported) continue;
    ++reported;
    event = {handle, NVML_EVENT_XID_CRITICAL_ERROR, faults.xid.load(), NVML_NO_INSTANCE,
             NVML_NO_INSTANCE};
    return true;
  }
  return false;
}

}  // namespace

GPUROTA_SIM_NVML nvmlEventSetCreate(nvmlEventSet_t* out) {
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (!gpurota::sim::nvml_machine()) return NVML_ERROR_UNINITIALIZED;
  *out = new nvmlEventSet_st;
  return NVML_SUCCESS;
}

GPUROTA_SIM_NVML nvmlEventSetFree(nvmlEventSet_t set) {
  delete set;
  return NVML_SUCCESS;
}

GPUROTA_SIM_NVML nvmlDeviceRegisterEvents(nvmlDevice_t handle, unsigned long long types,
                                          nvmlEventSet_t set) {
  const NvmlDevice device(handle);
  if (device.failed()) return device.error();
  if (set == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (device.is_instance() || types != NVML_EVENT_XID_CRITICAL_ERROR) {
    return NVML_ERROR_NOT_SUPPORTED;
  }
  const std::lock_guard lock(set->mutex);
  set->gpus.push_back({handle, device.machine().faults(device.index()).xid_count.load()});
  return NVML_SUCCESS;
}

GPUROTA_SIM_NVML nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t* out,
                                     unsigned timeout_ms) {
  if (set == nullptr || out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (!take_event(*set, *out)) {
    if (std::chrono::steady_clock::now() >= end) return NVML_ERROR_TIMEOUT;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return NVML_SUCCESS;
}

GPUROTA_SIM_NVML nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t* out, unsigned timeout_ms) {
  return nvmlEventSetWait_v2(set, out, timeout_ms);
}
