// Finds what keeps a request off GPUs, to explain why it waits. Used by the planner; only for this
// module. Pure.
#pragma once

#include "lease/gpu_plan.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gpurota::lease {

// `against` in all functions: the uses that the request must not disturb.

// By UUID: the first request for which each GPU is kept.
using KeptFor = std::map<GpuUuid, std::pair<RequestId, std::string>>;

// The first lease whose end lets the request fit on the GPU beside the remaining leases; else the
// lease that ends last. Only leases that end after `from` count. Null: there is none.
const Occupant* lease_in_the_way(const Request& request, const GpuPlan& gpu,
                                 GpuPlan::Against against, std::span<const Occupant> leases,
                                 WallTime from, WallTime now);

// Until when as many of the GPUs are free as the request wants, and which booking or request takes
// one of them then. Empty: too few are free, or no booking and no request will take one.
std::optional<FreeUntil> free_until(const Request& request, GpuPlan::Against against,
                                    std::span<GpuPlan* const> gpus, const QueueView& view,
                                    const KeptFor& kept_for, WallTime now);

// How many of the GPUs the request could have now, at most as many as it wants.
int free_now(const Request& request, GpuPlan::Against against, std::span<GpuPlan* const> gpus,
             WallTime now);

// Set if more is promised to leases than the capacity, or if use beyond the promises keeps the
// request off.
std::optional<Crowded> crowded(const Request& request, const GpuPlan& gpu, GpuPlan::Against against,
                               const std::vector<GpuRoom>& rooms, WallTime now);

}  // namespace gpurota::lease
