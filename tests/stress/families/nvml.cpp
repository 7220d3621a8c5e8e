#include "tests/stress/families/nvml.h"

#include <dlfcn.h>

namespace gpurota::stress {
namespace {

template <class F>
void find(F& function, void* library, const char* name) {
  function = reinterpret_cast<F>(::dlsym(library, name));
}

}  // namespace

Nvml::Nvml(std::vector<pid_t> pids) : pids_(std::move(pids)) {
  void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (library == nullptr) return;
  nvmlReturn_t (*init)() = nullptr;
  nvmlReturn_t (*count)(unsigned*) = nullptr;
  nvmlReturn_t (*by_index)(unsigned, nvmlDevice_t*) = nullptr;
  find(init, library, "nvmlInit_v2");
  find(count, library, "nvmlDeviceGetCount_v2");
  find(by_index, library, "nvmlDeviceGetHandleByIndex_v2");
  find(processes_, library, "nvmlDeviceGetComputeRunningProcesses_v3");
  unsigned devices = 0;
  if (init() != NVML_SUCCESS || count(&devices) != NVML_SUCCESS) return;
  for (unsigned i = 0; i < devices; ++i) {
    nvmlDevice_t device{};
    if (by_index(i, &device) == NVML_SUCCESS) devices_.push_back(device);
  }
}

std::uint64_t Nvml::sum() const {
  std::uint64_t most = 0;
  for (const nvmlDevice_t device : devices_) {
    nvmlProcessInfo_v2_t list[256];
    unsigned count = 256;
    std::uint64_t bytes = 0;
    if (processes_(device, &count, list) != NVML_SUCCESS) continue;
    for (unsigned i = 0; i < count; ++i) {
      for (const pid_t pid : pids_) {
        if (list[i].pid == static_cast<unsigned>(pid)) bytes += list[i].usedGpuMemory;
      }
    }
    most = bytes > most ? bytes : most;
  }
  return most;
}

}  // namespace gpurota::stress
