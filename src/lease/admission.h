// Whether a new request starts at once, and if not, why. The planner decides. Pure.
#pragma once

#include "lease/request_queue.h"

#include <optional>
#include <vector>

namespace gpurota::lease {

struct Admission {
  std::vector<LeaseGpu> gpus{};      // the request starts now, on these GPUs
  std::optional<Refusal> refusal{};  // else why not; kNoGpu: waiting helps
  bool way_made = false;             // only fillers are in the way:
  std::vector<LeaseId> evict{};      // fillers that would end
  std::vector<LeaseId> move_out{};   // fillers that would be moved to host memory
};

// The answer for the request at this place of the queue.
Admission admit(const QueueView& view, std::size_t place, WallTime now);

// Whether a request for this placement would start now if there were only these leases.
bool starts_beside(const PlacementRequest& placement, const std::vector<GpuRoom>& rooms,
                   const std::vector<Occupant>& leases);

}  // namespace gpurota::lease
