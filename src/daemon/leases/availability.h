// Computes what is available now: of each GPU, and for a request that would have to wait. State
// thread only; changes nothing.
#pragma once

#include "config/config.h"
#include "daemon/leases/allowances.h"
#include "daemon/leases/gpu_rooms.h"
#include "daemon/leases/queue_order.h"
#include "lease/available.h"
#include "lease/ways_out.h"

#include <functional>
#include <string>
#include <vector>

namespace gpurota::daemon {

class Availability {
 public:
  // All must outlive the Availability.
  struct Parts {
    const LeaseTables& tables;
    const QueueOrder& order;
    const GpuRooms& rooms;
    const Allowances& allowances;
    const config::Config& config;
    std::function<WallTime()> wall_clock;
  };

  explicit Availability(Parts parts) : parts_(std::move(parts)) {}

  // An entry for each GPU, in the order of the table.
  std::vector<lease::Available> available() const;
  // Nothing is available on a GPU that is not there.
  lease::Available available_on(const GpuUuid& gpu) const;
  // The changes that would let a request start now. Only changes that the site allows the request's
  // user. `entry`: a request in the queue. `request`: a request that is not in the queue.
  std::vector<lease::WayOut> ways_out(const QueueEntry& entry) const;
  std::vector<lease::WayOut> ways_out(const AcquireRequest& request) const;
  // The result of ways_out() as text for a reason. Empty for requests far back in the queue: each
  // such text needs a new plan of the whole queue, and an answer that shows the queue has a text
  // for every request. FindAlternatives makes such a plan for one request.
  std::string remedy(const QueueEntry& entry) const;
  std::string remedy(const AcquireRequest& request) const;

 private:
  std::vector<lease::WayOut> ways_out(const std::vector<lease::Request>& requests,
                                      std::size_t place, const AcquireRequest& asked) const;

  Parts parts_;
};

}  // namespace gpurota::daemon
