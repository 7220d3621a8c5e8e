// Whether somebody who comes now starts now, and if not, why: one answer, of the planner. Pure.
#pragma once

#include "lease/request_queue.h"

#include <optional>
#include <vector>

namespace gpurota::lease {

struct Admission {
  std::vector<LeaseGpu> gpus{};      // a lease on them, now
  std::optional<Refusal> refusal{};  // else why not; kNoGpu: waiting helps
  bool way_made = false;             // fillers are all that is in the way:
  std::vector<LeaseId> evict{};      // those that would end
  std::vector<LeaseId> move_out{};   // and those that would be moved to host memory
};

// Of the request at this place of the queue.
Admission admit(const QueueView& view, std::size_t place, WallTime now);

// Whether a request for this would start now if these leases were all that there is.
bool starts_beside(const PlacementRequest& placement, const std::vector<GpuRoom>& rooms,
                   const std::vector<Occupant>& leases);

}  // namespace gpurota::lease
