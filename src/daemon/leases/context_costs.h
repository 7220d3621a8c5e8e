// Keeps over restarts of the daemon how much memory a context takes on each GPU. Without that
// figure a new daemon would expect too much of a program, and refuse it memory that fits. A figure
// is valid for one version of the driver. State thread only.
#pragma once

#include "daemon/gpus/gpu_states.h"
#include "daemon/gpus/gpu_table.h"
#include "lease/grant_book.h"

namespace gpurota::daemon {

// Gives the stored costs to the grant book. Call when GPUs and leases are known.
void recall_context_costs(const GpuTable& gpus, const GpuStates& states, const std::string& driver,
                          lease::GrantBook& grants);

// Stores the cost that the grant book has measured, if it is new.
void remember_context_cost(const GpuUuid& gpu, const lease::GrantBook& grants,
                           const std::string& driver, GpuStates& states);

}  // namespace gpurota::daemon
