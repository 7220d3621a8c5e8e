// The processes on a GPU, from NVML's three lists of them.
#pragma once

#include "core/gpu.h"
#include "nvml/nvml_table.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::nvml {

// Whether `r` means that the driver has no such list, or none for this GPU.
bool is_not_there(nvmlReturn_t r);

// One entry per pid, ordered by pid. A process in several lists (compute and graphics, or compute
// and MPS) has the same memory in each, so its largest figure counts. The figures of a process in
// several MIG instances of one GPU are added. `graphics` is set for processes that do graphics
// only.
//
// NVML_SUCCESS, or the reason why there is no list of compute processes. A driver without the other
// two lists is not an error. The drivers of one branch, recognised by `driver_version`, need
// another call.
nvmlReturn_t read_processes(const NvmlTable& table, Device device,
                            const std::string& driver_version, std::vector<GpuProcess>& processes);

// Only the pids of the GPU's compute processes.
nvmlReturn_t read_compute_pids(const NvmlTable& table, Device device,
                               const std::string& driver_version, std::vector<pid_t>& pids);

// How many processes are on this GPU through an MPS server; nullopt if the driver cannot say.
std::optional<std::size_t> count_mps_clients(const NvmlTable& table, Device device,
                                             const std::string& driver_version);

}  // namespace gpurota::nvml
