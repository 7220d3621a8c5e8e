// How busy each lease keeps a GPU, computed from the driver's loads of processes. Pure.
#pragma once

#include "base/ids.h"
#include "daemon/gpus/gpu_table.h"
#include "daemon/leases/lease_entry.h"

#include <map>
#include <optional>

#include <sys/types.h>

namespace gpurota::daemon {

// The load by each lease of the GPU, in percent; empty: unknown. `owners`: the processes on the GPU
// that are in a lease, each with its lease. If all processes belong to one lease, its load is the
// GPU's. Otherwise the GPU's load is divided in proportion to the last known loads of the
// processes.
std::optional<std::map<LeaseId, int>> lease_loads(const GpuEntry& gpu,
                                                  const std::map<LeaseId, LeaseEntry>& leases,
                                                  const std::map<pid_t, LeaseId>& owners);

}  // namespace gpurota::daemon
