// A user's limits, and whether one more request is within them. Pure.
//
// Called by the daemon when a request arrives, before it is placed or queued. Waiting requests
// count as held: otherwise ten requests that are each within the limit would together exceed it
// once they are served.
#pragma once

#include "base/result.h"
#include "core/user_limits.h"

#include <chrono>
#include <optional>
#include <set>
#include <string>

namespace gpurota::lease {

// The present holding of a user, including waiting requests.
struct Holding {
  int gpus = 0;
  Bytes memory;
  int waiting = 0;                   // requests
  std::chrono::seconds gpu_time{0};  // within the window, of ended and current leases
  std::chrono::seconds promised{0};  // GPU time still to come, where an end is known
  Bytes pinned;
};

// The amount that is requested in addition to the holding.
struct Asking {
  int gpus = 0;
  Bytes memory;
  bool waits = false;                            // would join the queue
  std::optional<std::chrono::seconds> duration;  // of the lease; empty: no known end
  // The part of the duration that is not promised yet, when an existing lease is extended.
  std::optional<std::chrono::seconds> added;
  int priority = 0;
  bool interactive = false;
  int compute = 0;              // percent of a GPU's compute time
  int compute_there = 0;        // that the user's other leases there are promised, if known
  std::optional<double> parts;  // GPUs, a slice as a fraction of one; empty: whole GPUs only
};

// Every field has a value. Each field comes from the user's own rule if that sets it, else from the
// most generous rule of the user's groups, else from the rule for everyone, else from the default.
UserLimits limits_of(const ResolvedRules& rules, uid_t uid, const std::set<gid_t>& groups);

// The rule that sets a field of limits_of().
struct LimitOrigin {
  enum class Rule { kDefault, kEveryone, kGroup, kUser };
  Rule rule = Rule::kDefault;
  gid_t group = 0;  // if kGroup
  bool operator==(const LimitOrigin&) const = default;
};
struct LimitOrigins {
  LimitOrigin gpus, memory, hours, waiting, duration, priority, weight, pinned, book_ahead,
      bookings, interactive, compute;
};
LimitOrigins origins_of(const ResolvedRules& rules, uid_t uid, const std::set<gid_t>& groups);

// kLimit, with a sentence that names the limit, what is held and what is requested. `window`: the
// time over which `hours` are counted.
Result<void> check_allowance(const UserLimits& limits, const Holding& held, const Asking& asked,
                             std::chrono::seconds window);

// A request for bookings, and how many the user has.
struct BookingWish {
  int booked = 0;  // by the user, and not begun yet
  int more = 1;
  std::chrono::seconds ahead{0};  // how far ahead the last of them is
};
Result<void> check_booking(const UserLimits& limits, const BookingWish& wish);

// The rule with default_limits() in each field that it does not set.
UserLimits with_all_else_unlimited(UserLimits rule);

// "2 h", "90 min", "45 s": for the sentences above.
std::string duration_text(std::chrono::seconds duration);

}  // namespace gpurota::lease
