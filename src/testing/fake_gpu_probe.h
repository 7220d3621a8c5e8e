// GPUs defined by a test: a script instead of NVML.
//
// Thread-safe, because workers read while the test changes it. `used` of a sample is the sum of its
// processes plus the value of set_unattributed.
#pragma once

#include "ports/gpu_probe.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpurota::testing {

class FakeGpuProbe final : public ports::GpuProbe {
 public:
  // Adds a healthy GPU at the next index with UUID "GPU-00000000-0000-0000-0000-00000000000N", N
  // its index in hex, and returns it.
  GpuInfo add_gpu(Bytes memory, const std::string& name = "Fake GPU");
  // Like add_gpu, for a GPU that uses the machine's memory; none of that is in use.
  GpuInfo add_unified_gpu(Bytes memory);
  void set_machine_available(const GpuUuid& gpu, Bytes available);
  // Adds an instance below `parent`, which becomes a GPU in MIG mode; its UUID is "MIG-…".
  GpuInfo add_mig(const GpuUuid& parent, Bytes memory);

  void set_process(const GpuUuid& gpu, pid_t pid, std::optional<Bytes> used, bool graphics = false);
  void remove_process(pid_t pid);  // from all GPUs
  void set_unattributed(const GpuUuid& gpu, Bytes used);
  void set_figures(const GpuUuid& gpu, const GpuFigures& figures);
  void set_load(const GpuUuid& gpu, std::optional<int> percent);
  void set_error(const GpuUuid& gpu, const std::string& error);  // empty: healthy again
  // From now on every read fails with this error (for example, no driver), until `clear_failure`.
  void set_failure(Error error);
  void clear_failure();
  // Reads of this GPU hang, as with a failing GPU, until unblock().
  void block(const GpuUuid& gpu);
  void block_driver();  // the same for reads of the driver and of all GPUs
  void unblock();
  int samples_read() const;
  void set_problems(std::vector<std::string> problems);  // of DriverInfo
  void set_settings(std::vector<Setting> settings);      // of all GPUs

  void set_links(std::vector<GpuLink> links);

  // From now on the driver has memory limits of control groups.
  void set_has_limits(bool has_limits);
  // As somebody else: of a group that there need not be. Empty: none.
  void set_group_limit(const GpuUuid& gpu, const std::string& group, std::optional<Bytes> hard);
  std::optional<Bytes> group_limit(const GpuUuid& gpu, const std::string& group) const;
  // From now on set_memory_limit() fails with this error; empty: it does not.
  void set_limit_error(std::optional<Error> error);
  // How many times set_memory_limit() was called.
  int limits_set() const;

  Result<ports::DriverInfo> read_driver() override;
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
  struct Gpu {
    GpuInfo info;
    Bytes unattributed;
    std::optional<Bytes> machine_available{};
    std::string error;
    GpuFigures figures;
    std::optional<int> load{};
    std::map<pid_t, GpuProcess> processes;
    bool blocked = false;
  };
  Gpu* find(const GpuUuid& uuid);
  std::unique_lock<std::mutex> ask_driver();

  mutable std::mutex mutex_;
  std::condition_variable unblocked_;
  std::vector<Gpu> gpus_;  // in the order of read_gpus
  std::optional<Error> failure_;
  bool driver_blocked_ = false;
  int samples_read_ = 0;
  bool has_limits_ = false;
  int limits_set_ = 0;
  std::optional<Error> limit_error_;
  std::map<std::pair<GpuUuid, std::string>, Bytes> group_limits_;
  std::vector<std::string> problems_;
  std::vector<GpuLink> links_;
  std::vector<Setting> settings_{{"compute_mode", "default"}, {"mps", "off"}};
};

}  // namespace gpurota::testing
