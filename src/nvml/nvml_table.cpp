#include "nvml/nvml_table.h"

#include <fmt/core.h>

#include <string>

#include <dlfcn.h>

namespace gpurota::nvml {
namespace {

template <class Function>
void look_up(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, symbol));
}

void look_up_lister(void* library, const std::string& base, ProcessLister& lister) {
  look_up(library, (base + "_v3").c_str(), lister.v3);
  look_up(library, (base + "_v2").c_str(), lister.v2);
  look_up(library, base.c_str(), lister.v1);
}

void look_up_figures(void* library, NvmlTable& table) {
  look_up(library, "nvmlDeviceGetPowerUsage", table.power_usage);
  look_up(library, "nvmlDeviceGetEnforcedPowerLimit", table.power_limit);
  look_up(library, "nvmlDeviceGetTemperature", table.temperature);
  look_up(library, "nvmlDeviceGetTemperatureThreshold", table.temperature_threshold);
  look_up(library, "nvmlDeviceGetClockInfo", table.clock_info);
  look_up(library, "nvmlDeviceGetCurrentClocksEventReasons", table.clock_reasons);
  if (table.clock_reasons == nullptr) {
    look_up(library, "nvmlDeviceGetCurrentClocksThrottleReasons", table.clock_reasons);
  }
  look_up(library, "nvmlDeviceGetTotalEccErrors", table.ecc_errors);
  look_up(library, "nvmlDeviceGetProcessUtilization", table.process_utilization);
  look_up(library, "nvmlEventSetCreate", table.events.create);
  look_up(library, "nvmlEventSetFree", table.events.free);
  look_up(library, "nvmlDeviceRegisterEvents", table.events.add);
  look_up(library, "nvmlEventSetWait_v2", table.events.wait);
}

void look_up_optional(void* library, NvmlTable& table) {
  look_up(library, "nvmlErrorString", table.error_string);
  look_up(library, "nvmlSystemGetDriverVersion", table.driver_version);
  look_up(library, "nvmlSystemGetCudaDriverVersion", table.cuda_version);
  look_up(library, "nvmlDeviceGetMemoryInfo_v2", table.memory_v2);
  look_up(library, "nvmlDeviceSetMemoryLimits_v1", table.set_memory_limits);
  look_up(library, "nvmlDeviceGetMemoryLimits_v1", table.memory_limits);
  look_up(library, "nvmlDeviceGetCudaComputeCapability", table.compute_capability);
  look_up(library, "nvmlDeviceGetMigMode", table.mig_mode);
  look_up(library, "nvmlDeviceGetMaxMigDeviceCount", table.mig_count);
  look_up(library, "nvmlDeviceGetMigDeviceHandleByIndex", table.mig_by_index);
  look_up(library, "nvmlDeviceGetMinorNumber", table.minor_number);
  look_up(library, "nvmlDeviceGetGpuInstanceId", table.gpu_instance_id);
  look_up(library, "nvmlDeviceGetComputeInstanceId", table.compute_instance_id);
  look_up(library, "nvmlDeviceGetComputeMode", table.compute_mode);
  look_up(library, "nvmlDeviceGetPersistenceMode", table.persistence_mode);
  look_up(library, "nvmlDeviceGetUtilizationRates", table.utilization);
  look_up(library, "nvmlDeviceGetTopologyCommonAncestor", table.common_ancestor);
  look_up(library, "nvmlDeviceGetP2PStatus", table.p2p_status);
  look_up_lister(library, "nvmlDeviceGetComputeRunningProcesses", table.compute);
  look_up_lister(library, "nvmlDeviceGetGraphicsRunningProcesses", table.graphics);
  look_up_lister(library, "nvmlDeviceGetMPSComputeRunningProcesses", table.mps);
}

}  // namespace

Result<NvmlTable> load_nvml(const std::string& path) {
  void* library = ::dlopen(path.empty() ? kLibrary : path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = ::dlerror();
    return fail(
        Code::kUnavailable,
        fmt::format("no NVIDIA driver: cannot load {} ({}). It comes with the driver (in Debian "
                    "the package libnvidia-ml1); see `gpurota doctor` for the rest",
                    kLibrary, reason == nullptr ? "no reason given" : reason));
  }
  NvmlTable table;
  const char* missing = nullptr;
  const auto need = [&](const char* symbol, auto& function) {
    look_up(library, symbol, function);
    if (function == nullptr) missing = symbol;
  };
  need("nvmlInit_v2", table.init);
  need("nvmlShutdown", table.shutdown);
  need("nvmlDeviceGetCount_v2", table.device_count);
  need("nvmlDeviceGetHandleByIndex_v2", table.device_by_index);
  need("nvmlDeviceGetHandleByUUID", table.device_by_uuid);
  need("nvmlDeviceGetName", table.name);
  need("nvmlDeviceGetUUID", table.uuid);
  need("nvmlDeviceGetPciInfo_v3", table.pci_info);
  need("nvmlDeviceGetMemoryInfo", table.memory_v1);
  if (missing != nullptr) {
    return fail(Code::kUnavailable,
                fmt::format("the NVIDIA driver is too old: its {} has no {}", kLibrary, missing));
  }
  look_up_optional(library, table);
  look_up_figures(library, table);
  return table;
}

}  // namespace gpurota::nvml
