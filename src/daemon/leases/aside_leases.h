// The swap leases that are in host memory for a booking: those that a booking is moving there as
// its owner begins to use it, and those that do not fit beside the slice of a booking that has
// begun. State thread only.
//
// Nothing is stored here. A daemon that starts finds the same leases, as no swap lease is granted
// beside slices that leave too little for it.
#pragma once

#include "daemon/gpus/gpu_table.h"
#include "daemon/leases/gpu_rooms.h"
#include "daemon/leases/lease_manager.h"
#include "ports/processes.h"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace gpurota::daemon {

class AsideLeases {
 public:
  // All outlive it.
  struct Parts {
    const LeaseTables& tables;
    LeaseManager& leases;
    const GpuTable& gpus;
    const GpuRooms& rooms;
    ports::Processes& processes;
    // Moves a swap lease to host memory, or lets it take turns again; `why`: a sentence for people.
    std::function<void(LeaseId lease, bool aside, const std::string& why)> set_aside;
  };

  explicit AsideLeases(Parts parts) : parts_(std::move(parts)) {}

  // Orders leases to host memory and back. Call after each change of a lease or a booking.
  void update();
  // As of the last update.
  const std::set<LeaseId>& leases() const { return leases_; }
  // The leases of bookings beside whose slices swap leases do not fit, and that have had no process
  // for `longest`. A booking counts even if its owner has said that it is used. Call now and then.
  std::vector<LeaseId> find_idle(TimePoint now, Duration longest);

 private:
  // The leases that are to be in host memory, each with the reason.
  std::map<LeaseId, std::string> wanted();

  Parts parts_;
  std::set<LeaseId> leases_;
  std::set<LeaseId> causes_;                 // leases of bookings, as of the last update
  std::map<LeaseId, TimePoint> idle_since_;  // since when each of causes_ has no process
};

}  // namespace gpurota::daemon
