// A user's limits, and whether one more request is within them. Pure.
//
// Called by the daemon when a request arrives, before it is placed or queued. Requests that wait
// count as held: else ten requests that are each within the limit would pass it together once they
// are served.
#pragma once

#include "base/result.h"
#include "core/user_limits.h"

#include <chrono>
#include <optional>
#include <set>
#include <string>

namespace gpurota::lease {

// The present holding of a user, waiting requests included.
struct Holding {
  int gpus = 0;
  Bytes memory;
  int waiting = 0;                   // requests
  std::chrono::seconds gpu_time{0};  // within the window, of ended leases and of these so far
  std::chrono::seconds promised{0};  // GPU time that is still to come, where an end is known
  Bytes pinned;
};

// The part that is asked for on top.
struct Asking {
  int gpus = 0;
  Bytes memory;
  bool waits = false;                            // would join the queue
  std::optional<std::chrono::seconds> duration;  // of the lease; empty: no end is known
  // The part of the duration that is not promised yet, where an existing lease gets longer.
  std::optional<std::chrono::seconds> added;
  int priority = 0;
  std::optional<double> parts;  // GPUs, a slice as its part of one; empty: all of them whole
};

// Every field has a value. The user's own rule counts before those of their groups, of which the
// most generous does, before the one for everyone, before the default; each field by itself.
UserLimits limits_of(const ResolvedRules& rules, uid_t uid, const std::set<gid_t>& groups);

// Where a field of limits_of() comes from.
struct LimitOrigin {
  enum class Rule { kDefault, kEveryone, kGroup, kUser };
  Rule rule = Rule::kDefault;
  gid_t group = 0;  // of kGroup
  bool operator==(const LimitOrigin&) const = default;
};
struct LimitOrigins {
  LimitOrigin gpus, memory, hours, waiting, duration, priority, weight, pinned, book_ahead,
      bookings;
};
LimitOrigins origins_of(const ResolvedRules& rules, uid_t uid, const std::set<gid_t>& groups);

// kLimit with a sentence that names the limit, what is held and what is asked for. `window`: what
// `hours` is counted over.
Result<void> check_allowance(const UserLimits& limits, const Holding& held, const Asking& asked,
                             std::chrono::seconds window);

// The same for what is booked ahead.
struct BookingWish {
  int booked = 0;  // by the user, and not begun
  int more = 1;
  std::chrono::seconds ahead{0};  // how far the last of them is
};
Result<void> check_booking(const UserLimits& limits, const BookingWish& wish);

// The same for a rule with gaps that are no limits.
UserLimits with_all_else_unlimited(UserLimits rule);

// "2 h", "90 min", "45 s": for those sentences.
std::string duration_text(std::chrono::seconds duration);

}  // namespace gpurota::lease
