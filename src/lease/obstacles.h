// Finds the obstacles of a request on GPUs, to explain why it waits. Behind the planner, of this
// module only. Pure.
#pragma once

#include "lease/gpu_plan.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gpurota::lease {

// `against`, in all of them: what the request has to leave alone.

// By UUID: for whom each GPU is kept first.
using KeptFor = std::map<GpuUuid, std::pair<RequestId, std::string>>;

// The lease after whose end the request fits there from `from` on, beside the others; else the one
// that ends last. Null: no lease is there then.
const Occupant* lease_in_the_way(const Request& request, const GpuPlan& gpu,
                                 GpuPlan::Against against, std::span<const Occupant> leases,
                                 WallTime from, WallTime now);

// Until when as many of the GPUs are free for the request as it wants, and what happens then.
// Nothing: too few are free, or nothing is to happen.
std::optional<FreeUntil> free_until(const Request& request, GpuPlan::Against against,
                                    std::span<GpuPlan* const> gpus, const QueueView& view,
                                    const KeptFor& kept_for, WallTime now);

// How many of the GPUs the request could have now, at most as many as it wants.
int free_now(const Request& request, GpuPlan::Against against, std::span<GpuPlan* const> gpus,
             WallTime now);

// Whether something else than the size of the leases there is in the way.
std::optional<Crowded> crowded(const Request& request, const GpuPlan& gpu, GpuPlan::Against against,
                               const std::vector<GpuRoom>& rooms, WallTime now);

}  // namespace gpurota::lease
