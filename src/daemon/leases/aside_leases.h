// The swap leases that are in host memory because of a booking. There are two kinds: leases that a
// booking moves there when its owner begins to use it, and leases that do not fit beside the slice
// of a booking that has begun. State thread only.
//
// Nothing is stored here. A new daemon computes the same leases, as no swap lease is granted beside
// slices that leave too little memory for it.
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
  // All must outlive the AsideLeases.
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
  // The leases that are to be in host memory, as of the last update().
  const std::set<LeaseId>& leases() const { return leases_; }
  // The leases of bookings that keep swap leases in host memory, and have had no process and no
  // memory on a GPU for `longest`. The result includes leases whose owner has said that
  // the booking is used. Call now and then.
  std::vector<LeaseId> find_idle(TimePoint now, Duration longest);

 private:
  // The leases that are to be in host memory, each with the reason.
  std::map<LeaseId, std::string> wanted();

  Parts parts_;
  std::set<LeaseId> leases_;
  std::set<LeaseId> causes_;                 // leases of bookings, as of the last update
  std::map<LeaseId, TimePoint> idle_since_;  // of unused leases in causes_: since when
};

}  // namespace gpurota::daemon
