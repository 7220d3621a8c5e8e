// NVML: memory, processes and utilisation, from the same books as cuMemGetInfo.
#include "sim/nvml/nvml.h"
#include "sim/state/control_groups.h"

#include <algorithm>
#include <cstring>

#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

using gpurota::sim::DeviceTotals;
using gpurota::sim::NvmlDevice;
using gpurota::sim::ProcessUse;

namespace {

// A whole GPU also lists the processes of its MIG instances.
template <class Visit>
void for_each_process(const NvmlDevice& device, const Visit& visit) {
  const auto& state = device.machine().state();
  for (int i = 0; i < state.device_count; ++i) {
    if (i != device.index() && state.device[i].parent != device.index()) continue;
    for (const ProcessUse& process : device.machine().processes(i)) {
      if (state.faults[i].hides_processes.load() == 0) visit(process, state.device[i]);
    }
  }
}

unsigned long long figure_of(const ProcessUse& process, const gpurota::sim::DeviceConfig& config) {
  return config.process_figures < 2 ? NVML_VALUE_NOT_AVAILABLE_U64 : process.bytes;
}

void fill(nvmlProcessInfo_v1_t& out, const ProcessUse& process,
          const gpurota::sim::DeviceConfig& config) {
  out.pid = static_cast<unsigned>(process.pid);
  out.usedGpuMemory = figure_of(process, config);
}

void fill(nvmlProcessInfo_v2_t& out, const ProcessUse& process,
          const gpurota::sim::DeviceConfig& config) {
  out.pid = static_cast<unsigned>(process.pid);
  out.usedGpuMemory = figure_of(process, config);
  out.gpuInstanceId = config.gpu_instance;
  out.computeInstanceId = config.compute_instance;
}

// Like the driver: if `*count` is too small, answers the number of processes and
// NVML_ERROR_INSUFFICIENT_SIZE.
template <class Info>
nvmlReturn_t list(nvmlDevice_t handle, unsigned* count, Info* out, bool shows_any) {
  const NvmlDevice device(handle);
  if (device.failed()) return device.error();
  if (device.config().process_figures == 0) return NVML_ERROR_NOT_SUPPORTED;
  if (count == nullptr || (*count > 0 && out == nullptr)) return NVML_ERROR_INVALID_ARGUMENT;
  const unsigned room = *count;
  unsigned found = 0;
  if (shows_any) {
    for_each_process(device, [&](const ProcessUse& process, const auto& config) {
      if (found < room) fill(out[found], process, config);
      ++found;
    });
  }
  *count = found;
  return found > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

// The driver refuses MIG handles, and groups that are not there.
template <class Limits>
nvmlReturn_t check_limits(const NvmlDevice& device, const Limits* limits) {
  if (device.failed()) return device.error();
  if (!device.machine().limits_groups()) return NVML_ERROR_NOT_SUPPORTED;
  if (limits == nullptr || limits->nameSpace == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (std::strlen(limits->nameSpace) >= gpurota::sim::kMaxGroupPath) {
    return NVML_ERROR_INVALID_ARGUMENT;
  }
  if (device.is_instance() || device.config().mig_enabled != 0) return NVML_ERROR_NOT_SUPPORTED;
  return gpurota::sim::is_group(limits->nameSpace) ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

// Root, or the owner of the simulated groups, for machines that are simulated without root.
bool may_set_limits(const char* group) {
  struct stat info = {};
  return ::geteuid() == 0 || (::stat(group, &info) == 0 && info.st_uid == ::geteuid());
}

unsigned long long now_us() {
  timeval now = {};
  ::gettimeofday(&now, nullptr);
  return static_cast<unsigned long long>(now.tv_sec) * 1'000'000 +
         static_cast<unsigned long long>(now.tv_usec);
}

}  // namespace

GPUROTA_SIM_NVML nvmlDeviceGetMemoryInfo(nvmlDevice_t handle, nvmlMemory_t* out) {
  const NvmlDevice device(handle);
  if (device.failed()) return device.error();
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (device.config().unified != 0) return NVML_ERROR_NOT_SUPPORTED;
  const DeviceTotals totals = device.machine().totals(device.index());
  out->total = totals.total + totals.reserved;
  out->used = totals.used + totals.reserved;
  out->free = totals.total - std::min(totals.total, totals.used);
  return NVML_SUCCESS;
}

GPUROTA_SIM_NVML nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t handle, nvmlMemory_v2_t* out) {
  const NvmlDevice device(handle);
  if (device.failed()) return device.error();
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (out->version != NVML_MEMORY_V2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  if (device.config().unified != 0) return NVML_ERROR_NOT_SUPPORTED;
  const DeviceTotals totals = device.machine().totals_here(device.index());
  out->total = totals.total + totals.reserved;
  out->reserved = totals.reserved;
  out->used = totals.used;
  out->free = totals.total - std::min(totals.total, totals.used);
  return NVML_SUCCESS;
}

GPUROTA_SIM_NVML nvmlDeviceSetMemoryLimits_v1(nvmlDevice_t handle,
                                              nvmlSetMemoryLimits_v1_t* limits) {
  const NvmlDevice device(handle);
  if (const nvmlReturn_t r = check_limits(device, limits); r != NVML_SUCCESS) return r;
  if (limits->softLimit > limits->hardLimit) return NVML_ERROR_INVALID_ARGUMENT;
  if (!may_set_limits(limits->nameSpace)) return NVML_ERROR_NO_PERMISSION;
  const bool set = device.machine().set_group_limits(device.index(), limits->nameSpace,
                                                     limits->softLimit, limits->hardLimit);
  return set ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

GPUROTA_SIM_NVML nvmlDeviceGetMemoryLimits_v1(nvmlDevice_t handle,
                                              nvmlGetMemoryLimits_v1_t* limits) {
  const NvmlDevice device(handle);
  if (const nvmlReturn_t r = check_limits(device, limits); r != NVML_SUCCESS) return r;
  const auto set = device.machine().group_limits(device.index(), limits->nameSpace);
  limits->softLimit = set.soft;
  limits->hardLimit = set.hard;
  limits->currentUsed = set.used;
  return NVML_SUCCESS;
}

GPUROTA_SIM_NVML nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t handle, nvmlBAR1Memory_t* out) {
  const NvmlDevice device(handle);
  if (device.failed()) return device.error();
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (device.config().unified != 0) return NVML_ERROR_NOT_SUPPORTED;
  *out = {device.config().bar1_bytes, device.config().bar1_bytes, 0};
  return NVML_SUCCESS;
}

#define GPUROTA_SIM_PROCESS_LISTS(kind, shows_any)                                                \
  GPUROTA_SIM_NVML nvmlDeviceGet##kind##RunningProcesses(nvmlDevice_t device, unsigned* count,    \
                                                         nvmlProcessInfo_v1_t* out) {             \
    return list(device, count, out, shows_any);                                                   \
  }                                                                                               \
  GPUROTA_SIM_NVML nvmlDeviceGet##kind##RunningProcesses_v2(nvmlDevice_t device, unsigned* count, \
                                                            nvmlProcessInfo_v2_t* out) {          \
    return list(device, count, out, shows_any);                                                   \
  }                                                                                               \
  GPUROTA_SIM_NVML nvmlDeviceGet##kind##RunningProcesses_v3(nvmlDevice_t device, unsigned* count, \
                                                            nvmlProcessInfo_v2_t* out) {          \
    return list(device, count, out, shows_any);                                                   \
  }

GPUROTA_SIM_PROCESS_LISTS(Compute, true)
GPUROTA_SIM_PROCESS_LISTS(Graphics, false)
GPUROTA_SIM_PROCESS_LISTS(MPSCompute, false)

GPUROTA_SIM_NVML nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t handle,
                                                       nvmlProcessDetailList_v1_t* out) {
  const NvmlDevice device(handle);
  if (device.failed()) return device.error();
  if (out == nullptr || out->mode > 2) return NVML_ERROR_INVALID_ARGUMENT;
  if (out->version != NVML_PROCESS_DETAIL_LIST_V1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  if (device.config().process_figures == 0) return NVML_ERROR_NOT_SUPPORTED;
  const unsigned room = out->procArray == nullptr ? 0 : out->numProcArrayEntries;
  unsigned found = 0;
  if (out->mode == 0) {
    for_each_process(device, [&](const ProcessUse& process, const auto& config) {
      if (found < room) {
        out->procArray[found] = {static_cast<unsigned>(process.pid), figure_of(process, config),
                                 config.gpu_instance, config.compute_instance, 0};
      }
      ++found;
    });
  }
  out->numProcArrayEntries = found;
  return found > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

GPUROTA_SIM_NVML nvmlDeviceGetUtilizationRates(nvmlDevice_t handle, nvmlUtilization_t* out) {
  const NvmlDevice device(handle);
  if (device.failed()) return device.error();
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (device.is_instance() || device.config().mig_enabled != 0) return NVML_ERROR_NOT_SUPPORTED;
  const unsigned busy = device.machine().utilisation(device.index(), 0);
  *out = {busy, busy / 2};
  return NVML_SUCCESS;
}

GPUROTA_SIM_NVML nvmlDeviceGetProcessUtilization(nvmlDevice_t handle,
                                                 nvmlProcessUtilizationSample_t* out,
                                                 unsigned* count, unsigned long long since_us) {
  const NvmlDevice device(handle);
  if (device.failed()) return device.error();
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const unsigned long long now = now_us();
  const unsigned room = out == nullptr ? 0 : *count;
  unsigned found = 0;
  if (since_us < now) {
    for_each_process(device, [&](const ProcessUse& process, const auto&) {
      const unsigned busy = device.machine().utilisation(device.index(), process.pid);
      if (busy == 0) return;
      if (found < room) {
        out[found] = {static_cast<unsigned>(process.pid), now, busy, busy / 2, 0, 0};
      }
      ++found;
    });
  }
  *count = found;
  if (found == 0) return NVML_ERROR_NOT_FOUND;
  return found > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}
