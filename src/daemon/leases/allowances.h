// The limits that the site sets a user, checked before a lease is made and before one is given
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
#include <optional>

namespace gpurota::daemon {

class Allowances {
 public:
  // All outlive it.
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
    // Bookings that have begun.
    std::function<std::vector<lease::BookedTime>()> past_bookings{};
  };

  explicit Allowances(Parts parts) : parts_(std::move(parts)) {}

  // In all functions `waiting` is what the user asks for in the queue already. The first one:
  // whether the user may have this too, beside what the user has and waits for.
  Result<void> check(const AcquireRequest& request, bool waits,
                     const lease::Holding& waiting) const;
  // The same for a user who has nothing and waits for nothing.
  Result<void> check_ever(const AcquireRequest& request, const lease::Holding& waiting) const;
  // Whether the user may make these bookings.
  struct Booking {
    std::string user;                       // for messages
    std::vector<WallTime> begins;           // in their order
    std::vector<lease::BookedTime> booked;  // by everybody, and not begun
  };
  Result<void> check_booking(const AcquireRequest& request, const Booking& wish,
                             const lease::Holding& waiting) const;
  // Whether the lease may be changed to `changed`.
  Result<void> check_more(const Lease& lease, const Lease& changed,
                          const lease::Holding& waiting) const;
  // Counts one more lease or request. An error: the user has made too many in an hour.
  Result<void> count_new(const AcquireRequest& request) const;
  // A user's limits, where each comes from, and what the user has and waits for.
  struct Standing {
    UserLimits limits;
    lease::LimitOrigins origins;
    lease::Holding held;
    int leases = 0;  // leases and requests together
  };
  Standing standing_of(uid_t uid, const lease::Holding& waiting) const;
  // Adds the bookings that have begun and leaves out those of administrators: the result counts for
  // the bounds of all other users.
  std::vector<lease::BookedTime> counted(std::vector<lease::BookedTime> booked) const;
  // The bounds of this user's bookings; a field without a bound says so.
  lease::BookingBounds booking_bounds(uid_t uid) const;
  UserLimits limits_of(uid_t uid) const { return parts_.users.limits_of(uid); }

 private:
  lease::Holding held_by(uid_t uid, const UserLimits& limits, const lease::Holding& waiting) const;
  lease::Asking asking(const AcquireRequest& request) const;
  // Without those of pods; with fillers only if the site counts them.
  int leases_of(uid_t uid) const;
  Result<void> check_pods() const;

  Parts parts_;
};

}  // namespace gpurota::daemon
