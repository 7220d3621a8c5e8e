// GPUs as NVML sees them. See ports/gpu_probe.h: blocking, so for worker threads; one call at a
// time per probe, while any number of probes may be used at the same time.
//
// The driver is loaded and initialised by the first call that finds it, so the daemon may be
// started before the driver. Memory sizes exclude what the driver reserves for itself (0.4 GiB of
// an H100), so a size is what leases can use, and what CUDA reports.
#pragma once

#include "nvml/nvml_figures.h"
#include "nvml/nvml_table.h"
#include "ports/gpu_probe.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::nvml {

class NvmlProbe final : public ports::GpuProbe {
 public:
  using Loader = std::function<Result<NvmlTable>()>;
  explicit NvmlProbe(Loader loader = [] { return load_nvml(); });
  ~NvmlProbe() override;
  NvmlProbe(const NvmlProbe&) = delete;
  NvmlProbe& operator=(const NvmlProbe&) = delete;

  // All fail with kUnavailable (no driver, driver and library of different versions) or kDenied (no
  // access to the devices); the error says what to do.
  Result<ports::DriverInfo> read_driver() override;
  // The index of a MIG instance is its number within its parent.
  Result<std::vector<GpuInfo>> read_gpus() override;
  std::vector<GpuLink> read_links(const std::vector<GpuInfo>& gpus) override;
  GpuSample read_sample(const GpuInfo& gpu) override;
  GpuFigures read_figures(const GpuInfo& gpu, bool processes) override;
  Result<std::vector<pid_t>> read_compute_pids(const GpuInfo& gpu) override;
  std::vector<Setting> read_settings(const GpuInfo& gpu) override;
  Result<ports::MemoryLimits> read_memory_limits(const GpuInfo& gpu,
                                                 const std::string& group) override;
  Result<void> set_memory_limit(const GpuInfo& gpu, const std::string& group,
                                std::optional<Bytes> hard) override;

 private:
  // Empty: the GPU has no memory of its own, or the driver does not tell.
  struct Memory {
    Bytes total;
    Bytes used;
  };
  using MaybeMemory = std::optional<Memory>;
  Result<void> begin();
  Error describe(nvmlReturn_t r, const std::string& what);
  // For the calls about limits: the GPU's handle, or why there is none.
  Result<Device> limited_device(const GpuInfo& gpu);
  Error describe_limits(nvmlReturn_t r, const std::string& what);
  std::string text(nvmlReturn_t r) const;
  nvmlReturn_t read_memory(Device device, MaybeMemory& memory) const;
  nvmlReturn_t read_gpu(Device device, GpuInfo& gpu) const;
  void add_mig_instances(Device parent, GpuInfo& parent_info, std::vector<GpuInfo>& gpus) const;

  Loader loader_;
  std::optional<NvmlTable> table_;
  bool begun_ = false;
  std::string driver_version_;
  std::map<GpuUuid, FiguresReader> figures_;
};

}  // namespace gpurota::nvml
