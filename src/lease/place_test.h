// For tests of placement: what a new request would get, on GPUs for which only the leases' shares
// are known.
#pragma once

#include "lease/admission.h"

#include <utility>
#include <vector>

namespace gpurota::lease::testing {

// A lease with this share of the GPU, without an end.
inline Occupant occupant(const GpuRoom& room, std::optional<Bytes> limit, bool swap) {
  Occupant lease;
  lease.id = LeaseId{static_cast<std::uint64_t>(room.info.index) * 10 + (swap ? 4 : 3)};
  lease.user = "alice";
  LeaseGpu& share = lease.gpus.emplace_back();
  share.uuid = room.info.uuid;
  share.limit = limit;
  share.swap = swap;
  return lease;
}

// The result with no other request in the queue, as in most tests of placement.
inline tl::expected<std::vector<LeaseGpu>, Refusal> place(const PlacementRequest& request,
                                                          const std::vector<GpuRoom>& rooms,
                                                          const Topology& topology = {}) {
  std::vector<Occupant> leases;
  for (const GpuRoom& room : rooms) {
    if (room.exclusive) {
      leases.push_back(occupant(room, std::nullopt, false));
    } else if (!room.reserved.is_zero()) {
      leases.push_back(occupant(room, room.reserved, false));
    }
    if (!room.swap_needed.is_zero() && !room.exclusive) {
      leases.push_back(occupant(room, room.swap_needed, true));
    }
  }
  Request asked;
  asked.id = RequestId{1};
  asked.user = "bob";
  asked.placement = request;
  const std::vector<Request> queue = {asked};
  Admission admission = admit({queue, rooms, leases, topology}, 0, WallTime{});
  if (admission.refusal) return tl::unexpected(std::move(*admission.refusal));
  return std::move(admission.gpus);
}

}  // namespace gpurota::lease::testing
