// The functions of NVML that gpurota calls, looked up at run time: neither building nor starting
// needs the NVIDIA driver. Tests fill the table with functions of their own.
#pragma once

#include "abi/nvml_abi.h"
#include "base/result.h"

#include <string>

namespace gpurota::nvml {

using Device = nvmlDevice_t;

// A list of processes. The driver's library has gone through three versions of each such function;
// null where it lacks one. The functions fill an array of nvmlProcessInfo_v1_t, or of _v2_t for _v2
// and _v3, so the array is passed untyped.
struct ProcessLister {
  using Function = nvmlReturn_t (*)(Device, unsigned* count, void* infos);
  Function v3 = nullptr;
  Function v2 = nullptr;
  Function v1 = nullptr;
};

// Functions for events of GPUs, of use only if all four are there.
struct EventFunctions {
  nvmlReturn_t (*create)(nvmlEventSet_t*) = nullptr;
  nvmlReturn_t (*free)(nvmlEventSet_t) = nullptr;
  nvmlReturn_t (*add)(Device, unsigned long long types, nvmlEventSet_t) = nullptr;
  nvmlReturn_t (*wait)(nvmlEventSet_t, nvmlEventData_t*, unsigned timeout_ms) = nullptr;

  bool all() const { return create && free && add && wait; }
};

// All functions may be null except the first group, which every driver since Pascal has.
struct NvmlTable {
  nvmlReturn_t (*init)() = nullptr;
  nvmlReturn_t (*shutdown)() = nullptr;
  nvmlReturn_t (*device_count)(unsigned*) = nullptr;
  nvmlReturn_t (*device_by_index)(unsigned, Device*) = nullptr;
  nvmlReturn_t (*device_by_uuid)(const char*, Device*) = nullptr;
  nvmlReturn_t (*name)(Device, char*, unsigned) = nullptr;
  nvmlReturn_t (*uuid)(Device, char*, unsigned) = nullptr;
  nvmlReturn_t (*pci_info)(Device, nvmlPciInfo_t*) = nullptr;
  nvmlReturn_t (*memory_v1)(Device, nvmlMemory_t*) = nullptr;

  const char* (*error_string)(nvmlReturn_t) = nullptr;
  nvmlReturn_t (*driver_version)(char*, unsigned) = nullptr;
  nvmlReturn_t (*cuda_version)(int*) = nullptr;
  nvmlReturn_t (*memory_v2)(Device, nvmlMemory_v2_t*) = nullptr;
  nvmlReturn_t (*set_memory_limits)(Device, nvmlSetMemoryLimits_v1_t*) = nullptr;
  nvmlReturn_t (*memory_limits)(Device, nvmlGetMemoryLimits_v1_t*) = nullptr;
  nvmlReturn_t (*compute_capability)(Device, int*, int*) = nullptr;
  nvmlReturn_t (*mig_mode)(Device, unsigned* now, unsigned* after_reset) = nullptr;
  nvmlReturn_t (*mig_count)(Device, unsigned*) = nullptr;
  nvmlReturn_t (*mig_by_index)(Device, unsigned, Device*) = nullptr;
  nvmlReturn_t (*minor_number)(Device, unsigned*) = nullptr;
  nvmlReturn_t (*gpu_instance_id)(Device, unsigned*) = nullptr;
  nvmlReturn_t (*compute_instance_id)(Device, unsigned*) = nullptr;
  nvmlReturn_t (*compute_mode)(Device, nvmlComputeMode_t*) = nullptr;
  nvmlReturn_t (*persistence_mode)(Device, nvmlEnableState_t*) = nullptr;
  nvmlReturn_t (*utilization)(Device, nvmlUtilization_t*) = nullptr;
  nvmlReturn_t (*power_usage)(Device, unsigned* milliwatts) = nullptr;
  nvmlReturn_t (*power_limit)(Device, unsigned* milliwatts) = nullptr;
  nvmlReturn_t (*temperature)(Device, int sensor, unsigned*) = nullptr;
  nvmlReturn_t (*temperature_threshold)(Device, int threshold, unsigned*) = nullptr;
  nvmlReturn_t (*clock_info)(Device, int kind, unsigned* megahertz) = nullptr;
  nvmlReturn_t (*clock_reasons)(Device, unsigned long long*) = nullptr;
  nvmlReturn_t (*ecc_errors)(Device, int kind, int counter, unsigned long long*) = nullptr;
  nvmlReturn_t (*process_utilization)(Device, nvmlProcessUtilizationSample_t*, unsigned* count,
                                      unsigned long long since_us) = nullptr;
  EventFunctions events;
  nvmlReturn_t (*common_ancestor)(Device, Device, nvmlGpuTopologyLevel_t*) = nullptr;
  nvmlReturn_t (*p2p_status)(Device, Device, int way, int* status) = nullptr;
  ProcessLister compute;
  ProcessLister graphics;
  ProcessLister mps;
};

inline constexpr const char* kLibrary = "libnvidia-ml.so.1";

// Loads the functions from the driver's library, which is never unloaded; `path` empty: where the
// loader finds it. kUnavailable, with what to install, if the library is missing or too old.
Result<NvmlTable> load_nvml(const std::string& path = {});

}  // namespace gpurota::nvml
