// Changes of a lease while it lives, within what its GPUs and its user's limits allow. State thread
// only.
#pragma once

#include "config/config.h"
#include "daemon/leases/allowances.h"
#include "daemon/leases/gpu_rooms.h"
#include "daemon/leases/lease_manager.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace gpurota::daemon {

struct UpdateRequest {
  std::optional<SizeSpec> memory;
  std::optional<SizeSpec> soft_limit;
  std::optional<std::string> note;
  std::optional<std::chrono::milliseconds> lasts{};  // from now on
  bool beyond_limits = false;  // an administrator gives more than the site allows the user
  std::optional<int> priority{};
  std::optional<std::chrono::milliseconds> quantum{};  // as in Lease
  std::optional<Author> by{};
  std::optional<EndWarning> warning{};
  std::optional<LatencyClass> latency{};
  std::optional<ComputeShare> compute{};
  std::optional<std::string> as_name{};  // of a pod's lease: "namespace/pod/container"
};

// Sets the earliest time at which a lease has to leave for a booking; nothing: the lease may stay.
// The lease's programs get a signal before that time, if its owner has asked for one
// (end_warnings.h). Call whenever the time becomes known, or changes. Does nothing if the lease is
// gone.
void set_leaving(const LeaseTables& tables, LeaseManager& leases, LeaseId id,
                 std::optional<WallTime> when);

class LeaseUpdates {
 public:
  // All must outlive the LeaseUpdates.
  struct Parts {
    const LeaseTables& tables;
    LeaseManager& leases;
    const GpuRooms& rooms;
    const Allowances& allowances;
    const config::Config& config;
    std::function<WallTime()> wall_clock;
  };

  explicit LeaseUpdates(Parts parts) : parts_(std::move(parts)) {}

  // Makes all requested changes, or none. kGone: the lease has ended; kLimit: no more is available,
  // or the user may not have more.
  Result<void> update(LeaseId id, const UpdateRequest& request) const;

 private:
  Result<void> change_gpus(const UpdateRequest& request, Lease& lease) const;
  Result<void> check_bookings(const Lease& before, const Lease& changed, bool beyond_limits) const;
  Result<void> change_compute(const UpdateRequest& request, Lease& lease) const;
  Result<void> change_turns(const UpdateRequest& request, Lease& lease) const;

  Parts parts_;
};

}  // namespace gpurota::daemon
