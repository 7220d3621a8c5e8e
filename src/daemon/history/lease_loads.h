// How busy each lease keeps a GPU, from what the driver says of processes. Pure.
#pragma once

#include "base/ids.h"
#include "daemon/gpus/gpu_table.h"
#include "daemon/leases/lease_entry.h"

#include <map>
#include <optional>

#include <sys/types.h>

namespace gpurota::daemon {

// Percent of the GPU, of each lease that has it; empty: it is not known. `owners`: of the processes
// there, those of leases. Where one lease's processes are the only ones they are as busy as the
// GPU; else the GPU's load is divided as that of the processes was when that was last read.
std::optional<std::map<LeaseId, int>> lease_loads(const GpuEntry& gpu,
                                                  const std::map<LeaseId, LeaseEntry>& leases,
                                                  const std::map<pid_t, LeaseId>& owners);

}  // namespace gpurota::daemon
