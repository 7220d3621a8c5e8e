// Whether a parked lease has room on its GPUs again (docs/design/park.md). State thread only.
//
// A lease that comes back is planned like a request, but before all requests of the queue. Bookings
// come first, except those for which the lease leaves.
#pragma once

#include "core/reason.h"
#include "daemon/leases/gpu_rooms.h"
#include "daemon/leases/queue.h"

#include <functional>
#include <optional>
#include <set>

namespace gpurota::daemon {

class ReturnRoom {
 public:
  // All must outlive the ReturnRoom.
  struct Parts {
    const LeaseTables& tables;
    const GpuTable& gpus;
    const GpuRooms& rooms;
    Queue& queue;
    ports::Processes& processes;
    const config::Config& config;
    std::function<WallTime()> wall_clock;
  };

  explicit ReturnRoom(Parts parts) : parts_(std::move(parts)) {}

  // Why the memory of the parked lease does not fit on its GPUs now; nothing: it fits. `later`:
  // leases that come back after this one. If only fillers are in the way, they are ordered to
  // leave.
  std::optional<Reason> find_obstacle(LeaseId lease, const std::set<LeaseId>& later);

 private:
  lease::Request request_of(const Lease& lease, const LeaseGpu& share) const;
  std::optional<Reason> obstacle_on(const Lease& lease, const LeaseGpu& share,
                                    const GpuRooms::Machine& machine);

  Parts parts_;
};

}  // namespace gpurota::daemon
