// The environment variables that put a program into a lease. State thread only.
#pragma once

#include "core/lease.h"
#include "daemon/gpus/gpu_table.h"
#include "daemon/leases/lease_entry.h"
#include "proto/types.h"

#include <string>
#include <vector>

namespace gpurota::daemon {

// CUDA_VISIBLE_DEVICES, together with CUDA_DEVICE_ORDER=PCI_BUS_ID: "0,2". GPUs that are not there
// any more are left out.
std::string visible_devices(const Lease& lease, const GpuTable& gpus);

// `container`: the program is in a container. The kernel does not show that a program in a
// container belongs to the lease, so such a program always gets the lease's token.
std::vector<proto::Variable> lease_environment(const LeaseEntry& entry, const GpuTable& gpus,
                                               const std::string& tenant_socket, bool container);

}  // namespace gpurota::daemon
