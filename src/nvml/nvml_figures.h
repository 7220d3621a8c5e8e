// What NVML says of a board (GpuFigures): power, temperature, clocks, errors, and how busy each process keeps it.
// Each of these is left out where the driver does not tell. Used by NvmlProbe; blocking, for one GPU and one thread.
#pragma once

#include "core/gpu.h"
#include "nvml/nvml_table.h"

#include <cstdint>
#include <optional>

namespace gpurota::nvml {

class FiguresReader {
 public:
  // `device` is the same GPU in every call.
  GpuFigures read(const NvmlTable& table, Device device, bool processes);

 private:
  std::optional<std::uint64_t> read_xid_errors(const NvmlTable& table, Device device);
  std::optional<std::vector<GpuFigures::ProcessLoad>> read_processes(const NvmlTable& table,
                                                                     Device device);

  enum class Events { kNotAsked, kComing, kNone };
  Events events_ = Events::kNotAsked;
  nvmlEventSet_t set_ = nullptr;  // never freed: NVML frees it when it is shut down
  std::uint64_t xid_errors_ = 0;
  unsigned long long processes_since_us_ = 0;  // samples behind this one are new
};

}  // namespace gpurota::nvml
