#include "sim/nvml/nvml.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>

namespace gpurota::sim {
namespace {

struct Library {
  std::mutex mutex;
  std::shared_ptr<Machine> machine;
  unsigned references = 0;
};

Library& library() {
  static auto* the_library = new Library;
  return *the_library;
}

}  // namespace

std::shared_ptr<Machine> nvml_machine() {
  const std::lock_guard lock(library().mutex);
  return library().machine;
}

nvmlReturn_t nvml_init() {
  const std::lock_guard lock(library().mutex);
  if (library().references == 0) library().machine = Machine::open("");
  if (!library().machine) return NVML_ERROR_DRIVER_NOT_LOADED;
  ++library().references;
  return NVML_SUCCESS;
}

nvmlReturn_t nvml_shutdown() {
  const std::lock_guard lock(library().mutex);
  if (library().references == 0) return NVML_ERROR_UNINITIALIZED;
  if (--library().references == 0) library().machine = nullptr;
  return NVML_SUCCESS;
}

nvmlDevice_t nvml_handle(int index) {
  return reinterpret_cast<nvmlDevice_t>(static_cast<std::uintptr_t>(index) + 1);
}

NvmlDevice::NvmlDevice(nvmlDevice_t handle) : machine_(nvml_machine()) {
  if (!machine_) {
    error_ = NVML_ERROR_UNINITIALIZED;
    return;
  }
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  if (number == 0 || number > static_cast<std::uintptr_t>(machine_->state().device_count)) {
    error_ = NVML_ERROR_INVALID_ARGUMENT;
    return;
  }
  index_ = static_cast<int>(number - 1);
  const int parent = machine_->config(index_).parent;
  const int board = parent >= 0 ? parent : index_;
  if (machine_->faults(board).lost.load() != 0) error_ = NVML_ERROR_GPU_IS_LOST;
}

std::vector<int> nvml_gpus(const Machine& machine) {
  std::vector<int> gpus;
  for (int i = 0; i < machine.state().device_count; ++i) {
    if (machine.config(i).parent < 0) gpus.push_back(i);
  }
  std::stable_sort(gpus.begin(), gpus.end(), [&](int a, int b) {
    const DeviceConfig &x = machine.config(a), &y = machine.config(b);
    if (x.pci_domain != y.pci_domain) return x.pci_domain < y.pci_domain;
    return x.pci_bus != y.pci_bus ? x.pci_bus < y.pci_bus : x.pci_device < y.pci_device;
  });
  return gpus;
}

nvmlReturn_t nvml_text(const char* text, char* out, unsigned length) {
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const std::size_t size = std::strlen(text) + 1;
  if (size > length) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::memcpy(out, text, size);
  return NVML_SUCCESS;
}

}  // namespace gpurota::sim

extern "C" int gpurota_sim_nvml_unsupported(const char* name) {
  const auto machine = gpurota::sim::nvml_machine();
  if (!machine) return NVML_ERROR_UNINITIALIZED;
  machine->count_unsupported(name);
  return NVML_ERROR_NOT_SUPPORTED;
}
