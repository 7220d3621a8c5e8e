// NVML: initialization and shutdown, versions, and finding devices.
#include "base/fd.h"
#include "sim/nvml/nvml.h"

#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <strings.h>
#include <unistd.h>

using gpurota::Fd;
using gpurota::sim::nvml_gpus;
using gpurota::sim::nvml_handle;
using gpurota::sim::nvml_machine;
using gpurota::sim::NvmlDevice;

GPUROTA_SIM_NVML nvmlInit_v2() { return gpurota::sim::nvml_init(); }
GPUROTA_SIM_NVML nvmlInit() { return gpurota::sim::nvml_init(); }
GPUROTA_SIM_NVML nvmlInitWithFlags(unsigned) { return gpurota::sim::nvml_init(); }
GPUROTA_SIM_NVML nvmlShutdown() { return gpurota::sim::nvml_shutdown(); }

extern "C" __attribute__((visibility("default"))) const char* nvmlErrorString(nvmlReturn_t code) {
  switch (code) {
    case NVML_SUCCESS:
      return "Success";
    case NVML_ERROR_UNINITIALIZED:
      return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT:
      return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED:
      return "Not Supported";
    case NVML_ERROR_NO_PERMISSION:
      return "Insufficient Permissions";
    case NVML_ERROR_NOT_FOUND:
      return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
      return "Insufficient Size";
    case NVML_ERROR_DRIVER_NOT_LOADED:
      return "Driver Not Loaded";
    case NVML_ERROR_GPU_IS_LOST:
      return "GPU is lost";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
      return "Argument version mismatch";
    default:
      return "Unknown Error";
  }
}

GPUROTA_SIM_NVML nvmlSystemGetDriverVersion(char* out, unsigned length) {
  const auto machine = nvml_machine();
  if (!machine) return NVML_ERROR_UNINITIALIZED;
  return gpurota::sim::nvml_text(machine->state().driver_version, out, length);
}

GPUROTA_SIM_NVML nvmlSystemGetNVMLVersion(char* out, unsigned length) {
  const auto machine = nvml_machine();
  if (!machine) return NVML_ERROR_UNINITIALIZED;
  char text[96];
  std::snprintf(text, sizeof text, "%d.%s", machine->state().cuda_version / 1000,
                machine->state().driver_version);
  return gpurota::sim::nvml_text(text, out, length);
}

GPUROTA_SIM_NVML nvmlSystemGetCudaDriverVersion_v2(int* version) {
  const auto machine = nvml_machine();
  if (!machine) return NVML_ERROR_UNINITIALIZED;
  if (version == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *version = machine->state().cuda_version;
  return NVML_SUCCESS;
}

GPUROTA_SIM_NVML nvmlSystemGetCudaDriverVersion(int* version) {
  return nvmlSystemGetCudaDriverVersion_v2(version);
}

GPUROTA_SIM_NVML nvmlSystemGetProcessName(unsigned pid, char* out, unsigned length) {
  if (!nvml_machine()) return NVML_ERROR_UNINITIALIZED;
  if (out == nullptr || length == 0) return NVML_ERROR_INVALID_ARGUMENT;
  char path[64], text[4096];
  std::snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
  const Fd file(::open(path, O_RDONLY | O_CLOEXEC));
  const ssize_t size = file ? ::read(file.get(), text, sizeof text - 1) : -1;
  if (size <= 0) return NVML_ERROR_NOT_FOUND;
  text[size] = '\0';
  std::snprintf(out, length, "%s", text);
  return NVML_SUCCESS;
}

GPUROTA_SIM_NVML nvmlDeviceGetCount_v2(unsigned* count) {
  const auto machine = nvml_machine();
  if (!machine) return NVML_ERROR_UNINITIALIZED;
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = static_cast<unsigned>(nvml_gpus(*machine).size());
  return NVML_SUCCESS;
}

GPUROTA_SIM_NVML nvmlDeviceGetCount(unsigned* count) { return nvmlDeviceGetCount_v2(count); }

GPUROTA_SIM_NVML nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* out) {
  const auto machine = nvml_machine();
  if (!machine) return NVML_ERROR_UNINITIALIZED;
  const auto gpus = nvml_gpus(*machine);
  if (out == nullptr || index >= gpus.size()) return NVML_ERROR_INVALID_ARGUMENT;
  *out = nvml_handle(gpus[index]);
  return machine->faults(gpus[index]).lost.load() != 0 ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

GPUROTA_SIM_NVML nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t* out) {
  return nvmlDeviceGetHandleByIndex_v2(index, out);
}

GPUROTA_SIM_NVML nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* out) {
  const auto machine = nvml_machine();
  if (!machine) return NVML_ERROR_UNINITIALIZED;
  if (uuid == nullptr || out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  for (int i = 0; i < machine->state().device_count; ++i) {
    if (std::strcmp(machine->config(i).uuid, uuid) != 0) continue;
    *out = nvml_handle(i);
    return NvmlDevice(*out).error();
  }
  return NVML_ERROR_NOT_FOUND;
}

GPUROTA_SIM_NVML nvmlDeviceGetHandleByPciBusId_v2(const char* address, nvmlDevice_t* out) {
  const auto machine = nvml_machine();
  if (!machine) return NVML_ERROR_UNINITIALIZED;
  if (address == nullptr || out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  unsigned domain = 0, bus = 0, device = 0;
  if (std::sscanf(address, "%x:%x:%x", &domain, &bus, &device) != 3) {
    domain = 0;
    if (std::sscanf(address, "%x:%x", &bus, &device) != 2) return NVML_ERROR_INVALID_ARGUMENT;
  }
  for (const int gpu : nvml_gpus(*machine)) {
    const auto& config = machine->config(gpu);
    if (config.pci_domain != domain || config.pci_bus != bus || config.pci_device != device)
      continue;
    *out = nvml_handle(gpu);
    return NvmlDevice(*out).error();
  }
  return NVML_ERROR_NOT_FOUND;
}

GPUROTA_SIM_NVML nvmlDeviceGetHandleByPciBusId(const char* address, nvmlDevice_t* out) {
  return nvmlDeviceGetHandleByPciBusId_v2(address, out);
}
