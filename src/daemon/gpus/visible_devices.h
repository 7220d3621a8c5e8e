// The value of CUDA_VISIBLE_DEVICES for the programs of a lease, together with
// CUDA_DEVICE_ORDER=PCI_BUS_ID. State thread only.
#pragma once

#include "core/lease.h"
#include "daemon/gpus/gpu_table.h"

#include <string>

namespace gpurota::daemon {

// "0,2". GPUs that are not there any more are left out.
std::string visible_devices(const Lease& lease, const GpuTable& gpus);

}  // namespace gpurota::daemon
