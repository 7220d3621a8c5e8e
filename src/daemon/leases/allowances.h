// The limits that the site sets for a user, checked before a lease is made and before a lease gets
// more. State thread only; changes nothing but the budget of new leases.
#pragma once

#include "config/config.h"
#include "daemon/gpus/gpu_table.h"
#include "daemon/leases/lease_tables.h"
#include "daemon/users/user_budgets.h"
#include "daemon/users/users.h"
#include "lease/allowance.h"
#include "lease/booking_bounds.h"

#include <chrono>
#include <functional>
#include <map>
#include <optional>

namespace gpurota::daemon {

class Allowances {
 public:
  // All must outlive the Allowances.
  struct Parts {
    const LeaseTables& tables;
    const GpuTable& gpus;
    const config::Config& config;
    const Users& users;
    UserBudgets& budgets;
    // GPU time of a user since `from`, ended leases included. Nothing: no history is kept, and only
    // the time of the current leases counts.
    std::function<std::optional<std::chrono::seconds>(uid_t uid, WallTime from)> gpu_time_of;
    std::function<WallTime()> wall_clock;
  };

  explicit Allowances(Parts parts) : parts_(std::move(parts)) {}

  // Whether the request, together with what the user has and waits for, is within the user's
  // limits.
  Result<void> check(const AcquireRequest& request, bool waits) const;
  // Like check(), as if the user had nothing and waited for nothing.
  Result<void> check_ever(const AcquireRequest& request) const;
  // Whether the user may make bookings that begin at the times `begins`, the earliest first.
  Result<void> check_booking(const AcquireRequest& request, const std::string& user,
                             const std::vector<WallTime>& begins) const;
  // Whether the lease may be changed to `changed`.
  Result<void> check_more(const Lease& lease, const Lease& changed) const;
  // Counts one more lease or request. An error: the user has made too many leases or requests
  // within an hour.
  Result<void> count_new(const AcquireRequest& request) const;
  // A user's limits, where each comes from, and what the user has and waits for.
  struct Standing {
    UserLimits limits;
    lease::LimitOrigins origins;
    lease::Holding held;
    int leases = 0;  // leases and requests together
  };
  Standing standing_of(uid_t uid) const;
  // The bookings that count for the bounds of users who are not administrators, including bookings
  // that have begun.
  std::vector<lease::BookedTime> counted_bookings() const;
  // The bounds of this user's bookings. A field that does not limit the user has its default.
  lease::BookingBounds booking_bounds(uid_t uid) const;
  UserLimits limits_of(uid_t uid) const { return parts_.users.limits_of(uid); }

 private:
  // The holdings and the waiting requests of the user.
  lease::Holding held_by(uid_t uid, const UserLimits& limits) const;
  lease::Asking asking(const AcquireRequest& request) const;
  // By GPU, the part of the compute time that leases of the user are promised.
  std::map<GpuUuid, int> compute_of(uid_t uid,
                                    const std::function<bool(const LeaseEntry&)>& counts) const;
  int compute_beside(const Lease& lease) const;
  // On the GPU of the request where it is the least: the part of the compute time that leases of
  // the user without an end are promised.
  int compute_for_long(const AcquireRequest& request) const;
  // Does not count leases of pods, and counts fillers only if the site does.
  int leases_of(uid_t uid) const;
  Result<void> check_pods() const;

  Parts parts_;
};

}  // namespace gpurota::daemon
