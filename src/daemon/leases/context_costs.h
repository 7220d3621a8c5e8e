// What a context takes on each GPU, over restarts of the daemon: a program that a new daemon takes for greedier than
// it is would be refused what fits. Known for one version of the driver. Used by Daemon, on the state thread.
#pragma once

#include "daemon/gpus/gpu_table.h"
#include "daemon/leases/lease_manager.h"
#include "lease/grant_book.h"

namespace gpurota::daemon {

// Tells the books what was stored. GPUs and leases are there already.
void recall_context_costs(const GpuTable& gpus, const LeaseManager& leases,
                          const std::string& driver, lease::GrantBook& grants);

// Stores what the books have learnt, if that is new.
void remember_context_cost(const GpuUuid& gpu, const lease::GrantBook& grants,
                           const std::string& driver, LeaseManager& leases);

}  // namespace gpurota::daemon
