// Whether a request that comes now starts now, and if not, why: the planner's one answer. Pure.
#pragma once

#include "lease/request_queue.h"

#include <optional>
#include <vector>

namespace gpurota::lease {

struct Admission {
  std::vector<LeaseGpu> gpus{};      // a lease on them, now
  std::optional<Refusal> refusal{};  // else why not; kNoGpu: waiting helps
  bool way_made = false;             // only fillers are in the way:
  std::vector<LeaseId> evict{};      // fillers that would end
  std::vector<LeaseId> move_out{};   // fillers that would be moved to host memory
};

// The answer for the request at this place of the queue.
Admission admit(const QueueView& view, std::size_t place, WallTime now);

// Whether such a request would start now beside only these leases.
bool starts_beside(const PlacementRequest& placement, const std::vector<GpuRoom>& rooms,
                   const std::vector<Occupant>& leases);

}  // namespace gpurota::lease
