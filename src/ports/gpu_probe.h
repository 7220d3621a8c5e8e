// The state of GPUs as the driver reports it: NVML in production, a fake in tests.
//
// Blocking: called on worker threads (a failing GPU may make the driver hang), never on the state
// thread. One call at a time per object.
#pragma once

#include "base/result.h"
#include "core/gpu.h"
#include "core/topology.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::ports {

struct DriverInfo {
  std::string driver_version;  // "580.159.04"
  int cuda_version = 0;        // 13000 for 13.0
  std::string cuda_text() const {
    return std::to_string(cuda_version / 1000) + "." + std::to_string(cuda_version % 1000 / 10);
  }
  // GPUs that the driver counts but cannot describe, and why. read_gpus() leaves these out.
  std::vector<std::string> problems;
};

// The driver's own limits for the memory of a control group on one GPU (driver 615 and later).
// Empty: none.
struct MemoryLimits {
  Bytes soft;
  std::optional<Bytes> hard;
  Bytes used;
};

class GpuProbe {
 public:
  virtual ~GpuProbe() = default;

  virtual Result<DriverInfo> read_driver() = 0;
  // All GPUs in PCI order; a GPU in MIG mode is followed by its instances.
  virtual Result<std::vector<GpuInfo>> read_gpus() = 0;
  // How close any two of `gpus` are; MIG instances are left out. Empty: the driver does not report
  // it.
  virtual std::vector<GpuLink> read_links(const std::vector<GpuInfo>& gpus) = 0;
  // For a failing GPU, the sample has `error` set.
  virtual GpuSample read_sample(const GpuInfo& gpu) = 0;
  // Takes longer than a sample: call it at most about once a second. With `processes` a call takes
  // 3 ms of processor time (on an H100), so make such calls less often. For a GPU that fails,
  // everything is empty.
  virtual GpuFigures read_figures(const GpuInfo& gpu, bool processes) = 0;
  // Only the pids of the GPU's compute processes, for checks that must cost little.
  virtual Result<std::vector<pid_t>> read_compute_pids(const GpuInfo& gpu) = 0;
  // Settings that matter to gpurota, with their values: "mps", "compute_mode", "mig", … for doctor.
  struct Setting {
    std::string name;
    std::string value;
  };
  virtual std::vector<Setting> read_settings(const GpuInfo& gpu) = 0;
  // The driver's limits of the control group whose directory is `group`. kUnavailable: this driver,
  // or this GPU, never has such limits; kGone: the group is gone, or takes no limit; kDenied: not
  // permitted; kIo: the driver has failed.
  virtual Result<MemoryLimits> read_memory_limits(const GpuInfo& gpu, const std::string& group) = 0;
  // Replaces the group's limits. Empty: removes them. Errors as above.
  virtual Result<void> set_memory_limit(const GpuInfo& gpu, const std::string& group,
                                        std::optional<Bytes> hard) = 0;
};

}  // namespace gpurota::ports
