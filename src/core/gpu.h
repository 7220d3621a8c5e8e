// GPUs as gpurota knows them: plain data, filled by the probe, read by every decision.
#pragma once

#include "base/bytes.h"
#include "base/ids.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace gpurota {

// Facts that do not change while the driver is loaded.
struct GpuInfo {
  GpuUuid uuid;
  int index = 0;             // PCI order; MIG instances follow their parent's order
  std::string name;          // as the driver spells it: untrusted text
  std::string pci;           // "00000000:01:00.0"; a MIG instance has its parent's
  Bytes memory;              // its size; if unified, the machine's
  GpuUuid parent;            // empty unless a MIG instance
  bool mig_enabled = false;  // a parent, of which only the instances can be leased
  int compute_major = 0;
  int compute_minor = 0;
  std::optional<int> device_minor{};      // of /dev/nvidiaN; empty: the driver does not report it
  std::optional<int> gpu_instance{};      // of a MIG instance, whose capability files have
  std::optional<int> compute_instance{};  // these numbers in their names
  // The driver reports no GPU memory of its own: the GPU uses the machine's memory, which programs
  // without a GPU use as well (docs/design/unified-memory.md).
  bool unified = false;
  bool operator==(const GpuInfo&) const = default;
};

// One process on one GPU, as NVML reports it.
struct GpuProcess {
  pid_t pid = 0;              // in the daemon's pid namespace
  std::optional<Bytes> used;  // empty where NVML cannot say
  bool graphics = false;
  bool operator==(const GpuProcess&) const = default;
};

// One sample of one GPU.
struct GpuSample {
  GpuUuid uuid;
  // By all together, without the driver's own reserve; empty where NVML cannot say.
  std::optional<Bytes> used;
  Bytes total;
  std::vector<GpuProcess> processes;         // one entry per pid
  bool lists_processes = true;               // false: NVML cannot list them
  std::optional<Bytes> machine_available{};  // of a unified GPU: what the machine has left
  std::string error;                  // empty: healthy; else what NVML said, and the rest is stale
  std::optional<int> load_percent{};  // how busy it was lately; empty where NVML cannot say
};

// The memory in use on the GPU, by all together: NVML's figure; for a unified GPU the machine's
// memory in use. Empty: unknown.
std::optional<Bytes> memory_in_use(const GpuInfo& gpu, const GpuSample& sample);

// Why a GPU's clocks are lower than they could be. Bits of GpuFigures::clock_limits.
enum class ClockLimit : std::uint32_t {
  kPower = 1,        // its power limit
  kTemperature = 2,  // it is too hot
  kHardware = 4,     // the board's own protection: power, temperature or too much current
  kPowerBrake = 8,   // the machine's power supply
  kSetting = 16,     // a setting of the administrator
  kSync = 32,        // slower GPUs of a group with synchronized clocks
};

// The figures of the board, and the load of each process. Empty: NVML cannot say.
struct GpuFigures {
  std::optional<int> power_mw{};
  std::optional<int> power_limit_mw{};
  std::optional<int> temperature{};  // °C, as below
  std::optional<int> slowdown_temperature{};
  std::optional<int> sm_clock_mhz{};
  std::optional<std::uint32_t> clock_limits{};
  std::optional<std::uint64_t> ecc_uncorrected{};  // errors since the driver was loaded
  std::optional<std::uint64_t> xid_errors{};       // since the daemon began to watch
  struct ProcessLoad {
    pid_t pid = 0;
    int sm_percent = 0;
    bool operator==(const ProcessLoad&) const = default;
  };
  std::optional<std::vector<ProcessLoad>> processes{};  // those that computed lately, on request
  bool operator==(const GpuFigures&) const = default;
};

// "GPU-6f1f…" or "MIG-…" -> the 16 raw bytes that cuDeviceGetUuid gives; nullopt if malformed.
std::optional<std::array<std::uint8_t, 16>> uuid_bytes(const GpuUuid& uuid);

}  // namespace gpurota
