// Remembers the memory that a context takes on each GPU over restarts of the daemon: a program that
// a new daemon takes for greedier than it is would be refused what fits. Known for one version of
// the driver. On the state thread.
#pragma once

#include "daemon/gpus/gpu_states.h"
#include "daemon/gpus/gpu_table.h"
#include "lease/grant_book.h"

namespace gpurota::daemon {

// Tells the books what was stored. GPUs and leases are there already.
void recall_context_costs(const GpuTable& gpus, const GpuStates& states, const std::string& driver,
                          lease::GrantBook& grants);

// Stores what the books have learnt, if that is new.
void remember_context_cost(const GpuUuid& gpu, const lease::GrantBook& grants,
                           const std::string& driver, GpuStates& states);

}  // namespace gpurota::daemon
