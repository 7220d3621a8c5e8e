// Shared by the exported functions of the simulated libnvidia-ml.so.1. Any thread.
#pragma once

#include "abi/nvml_abi.h"
#include "sim/state/machine.h"

#include <memory>

#define GPUROTA_SIM_NVML extern "C" __attribute__((visibility("default"))) nvmlReturn_t

namespace gpurota::sim {

// The machine, from nvmlInit to the last nvmlShutdown; null otherwise.
std::shared_ptr<Machine> nvml_machine();
nvmlReturn_t nvml_init();
nvmlReturn_t nvml_shutdown();

// A call about one device. A handle is the device's number plus one.
class NvmlDevice {
 public:
  explicit NvmlDevice(nvmlDevice_t handle);
  bool failed() const { return error_ != NVML_SUCCESS; }
  nvmlReturn_t error() const { return error_; }
  int index() const { return index_; }
  Machine& machine() const { return *machine_; }
  const DeviceConfig& config() const { return machine_->config(index_); }
  bool is_instance() const { return config().parent >= 0; }

 private:
  std::shared_ptr<Machine> machine_;
  nvmlReturn_t error_ = NVML_SUCCESS;
  int index_ = -1;
};

nvmlDevice_t nvml_handle(int index);
// Whole GPUs in PCI order, which is the order of NVML's indices.
std::vector<int> nvml_gpus(const Machine& machine);
nvmlReturn_t nvml_text(const char* text, char* out, unsigned length);

}  // namespace gpurota::sim
