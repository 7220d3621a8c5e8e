// How close the GPUs are to each other, from NVML. See ports/gpu_probe.h for threads.
#pragma once

#include "core/topology.h"
#include "nvml/nvml_table.h"

#include <utility>
#include <vector>

namespace gpurota::nvml {

// One link for each pair of `gpus`, whole GPUs. NVLink, through a bridge or a switch, takes
// precedence over PCIe. If the driver cannot tell, all links are kUnknown, and placement treats
// them alike.
std::vector<GpuLink> read_links(const NvmlTable& table,
                                const std::vector<std::pair<GpuUuid, Device>>& gpus);

}  // namespace gpurota::nvml
