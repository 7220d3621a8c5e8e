// How much of each GPU is available now. Status, JSON and metrics all show these figures. Pure.
#pragma once

#include "lease/gpu_timeline.h"
#include "lease/request_queue.h"

#include <map>
#include <span>
#include <vector>

namespace gpurota::lease {

// The memory that a request without a time limit would get at once, to the byte: beside the current
// leases, the plans of waiting requests, bookings, and use without a lease. Fillers leave for such
// a request.
struct Available {
  Bytes slice;  // --memory
  Bytes turns;  // --swap --memory; zero: no lease can take turns here now
  bool operator==(const Available&) const = default;
};

using Plans = std::map<GpuUuid, std::vector<GpuTimeline::Use>>;

// In the order of `rooms`. `plans`: those of the last decision. `unbooked_for`: as in Request, for
// a request without a time limit.
std::vector<Available> available(const std::vector<GpuRoom>& rooms,
                                 const std::vector<Occupant>& leases, const Plans& plans,
                                 WallTime now, std::span<const Booked> bookings = {},
                                 std::optional<std::chrono::milliseconds> unbooked_for = {});

}  // namespace gpurota::lease
