// NVML's figures of a board (GpuFigures): power, temperature, clocks, errors, and how busy each
// process keeps it. A figure that the driver does not report is left out. Used by NvmlProbe;
// blocking, for one GPU and one thread.
#pragma once

#include "core/gpu.h"
#include "nvml/nvml_table.h"

#include <cstdint>
#include <optional>

namespace gpurota::nvml {

// A set of NVML events, or none. The destructor frees the set, so an EventSet must be destroyed
// before NVML is shut down. forget() drops a set that the shutdown of NVML has freed already.
class EventSet {
 public:
  EventSet() = default;
  EventSet(const EventSet&) = delete;
  EventSet& operator=(const EventSet&) = delete;
  ~EventSet();
  // Asks NVML to report events of `types` for `device` in this set; false if NVML cannot. Called
  // once.
  bool open(const NvmlTable& table, Device device, unsigned long long types);
  nvmlEventSet_t get() const { return set_; }
  void forget() { set_ = nullptr; }

 private:
  nvmlEventSet_t set_ = nullptr;
  nvmlReturn_t (*free_)(nvmlEventSet_t) = nullptr;
};

class FiguresReader {
 public:
  // `device` is the same GPU in every call.
  GpuFigures read(const NvmlTable& table, Device device, bool processes);
  // Call when other code has shut NVML down, which has freed this object's set of events.
  void forget() { set_.forget(); }

 private:
  std::optional<std::uint64_t> read_xid_errors(const NvmlTable& table, Device device);
  std::optional<std::vector<GpuFigures::ProcessLoad>> read_processes(const NvmlTable& table,
                                                                     Device device);

  enum class Events { kNotAsked, kComing, kNone };
  Events events_ = Events::kNotAsked;
  EventSet set_;
  std::uint64_t xid_errors_ = 0;
  unsigned long long processes_since_us_ = 0;  // later samples are new
};

}  // namespace gpurota::nvml
