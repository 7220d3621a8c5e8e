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
    // GPU time of a user since then, ended leases included; nothing: no history is kept. Empty:
    // only what the current leases have had counts.
    std::function<std::optional<std::chrono::seconds>(uid_t uid, WallTime from)> gpu_time_of;
    std::function<WallTime()> wall_clock;
    // Bookings that have begun. Empty: none is known.
    std::function<std::vector<lease::BookedTime>()> past_bookings{};
  };

  explicit Allowances(Parts parts) : parts_(std::move(parts)) {}

  // `waiting` below: what the user asks for in the queue already.
  // Whether the user may have this too, by what they have and wait for.
  Result<void> check(const AcquireRequest& request, bool waits,
                     const lease::Holding& waiting) const;
  // The same if they had nothing and waited for nothing.
  Result<void> check_ever(const AcquireRequest& request, const lease::Holding& waiting) const;
  // Whether the user may book this, which nobody has yet.
  struct Booking {
    std::string user;                       // for messages
    std::vector<WallTime> begins;           // in their order
    std::vector<lease::BookedTime> booked;  // by everybody, and not begun
  };
  Result<void> check_booking(const AcquireRequest& request, const Booking& wish,
                             const lease::Holding& waiting) const;
  // Whether a lease of theirs may be changed to this.
  Result<void> check_more(const Lease& lease, const Lease& changed,
                          const lease::Holding& waiting) const;
  // One more lease, or request: not too many in an hour.
  Result<void> count_new(const AcquireRequest& request) const;
  // A user's limits, where each comes from, and what the user has and waits for.
  struct Standing {
    UserLimits limits;
    lease::LimitOrigins origins;
    lease::Holding held;
    int leases = 0;  // leases and requests together
  };
  Standing standing_of(uid_t uid, const lease::Holding& waiting) const;
  // Of these bookings and those that have begun: all that count for the bounds of users who are not
  // administrators.
  std::vector<lease::BookedTime> counted(std::vector<lease::BookedTime> booked) const;
  // The bounds of this user's bookings; where there are none, every field says so.
  lease::BookingBounds booking_bounds(uid_t uid) const;
  UserLimits limits_of(uid_t uid) const { return parts_.users.limits_of(uid); }

 private:
  lease::Holding held_by(uid_t uid, const UserLimits& limits, const lease::Holding& waiting) const;
  lease::Asking asking(const AcquireRequest& request) const;
  // Fillers too if they count.
  int leases_of(uid_t uid) const;
  Result<void> check_pods() const;

  Parts parts_;
};

}  // namespace gpurota::daemon
