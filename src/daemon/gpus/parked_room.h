// Which leases still take up room on a GPU while they are parked (docs/design/park.md). Pure.
#pragma once

#include "core/gpu.h"
#include "core/lease.h"

namespace gpurota::daemon {

// Whether the memory of the lease counts on this GPU, which is one of its GPUs. The memory of a
// parked lease does not count, unless the GPU uses the machine's memory, which parking does not
// free.
inline bool counts_on(const Lease& lease, const GpuInfo& gpu) {
  return gpu.unified || counts_on_gpus(lease.park);
}

}  // namespace gpurota::daemon
