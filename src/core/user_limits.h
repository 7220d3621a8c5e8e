// How much of the machine one user may have: plain data from the configuration.
//
// Filled by config, resolved to ids by the daemon's Accounts, read by lease/allowance.h. Where a
// field is empty, the next broader rule applies. kUnlimited removes what a broader rule set.
#pragma once

#include "base/bytes.h"
#include "core/compute_share.h"

#include <chrono>
#include <climits>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <sys/types.h>

namespace gpurota {

struct UserLimits {
  static constexpr int kUnlimited = INT_MAX;
  static constexpr Bytes kUnlimitedBytes{UINT64_MAX};
  static constexpr std::chrono::seconds kUnlimitedTime{INT64_MAX};

  std::optional<int> gpus;      // at a time, counted for each lease: two slices of one GPU are two
  std::optional<Bytes> memory;  // at a time: the limits of slices, the whole size of whole GPUs
  std::optional<int> hours;     // GPU hours within the last `hours_window`
  std::optional<int> waiting;   // requests in the queue
  std::optional<std::chrono::seconds> duration;  // of one lease
  std::optional<int> priority;                   // the highest allowed for a lease of theirs
  std::optional<int> weight;                     // of their turns, relative to other users
  std::optional<Bytes> pinned;  // host RAM in which their evicted memory may be pinned
  std::optional<std::chrono::seconds> book_ahead;  // how far ahead a booking may begin
  std::optional<int> bookings;                     // at a time, that have not begun
  std::optional<bool> interactive;                 // whether leases of theirs may be interactive
  std::optional<int> compute;  // percent of a GPU's time that their leases there may be promised

  bool operator==(const UserLimits&) const = default;
};

// The limits where no rule sets one. The number of requests is limited because they wait in the
// daemon's memory, and that of bookings because they keep GPUs from others before anybody uses
// them. The site decides all other limits.
inline UserLimits default_limits() {
  UserLimits limits;
  limits.gpus = UserLimits::kUnlimited;
  limits.memory = UserLimits::kUnlimitedBytes;
  limits.hours = UserLimits::kUnlimited;
  limits.waiting = 64;
  limits.duration = UserLimits::kUnlimitedTime;
  limits.priority = 0;
  limits.weight = 100;
  limits.pinned = UserLimits::kUnlimitedBytes;
  limits.book_ahead = std::chrono::hours(28 * 24);
  limits.bookings = 4;
  limits.interactive = true;
  limits.compute = kMostComputeShare;
  return limits;
}

// As written, with names, which may be numbers.
struct LimitRules {
  UserLimits everyone;
  std::map<std::string, UserLimits> groups;
  std::map<std::string, UserLimits> users;
  bool operator==(const LimitRules&) const = default;
};

// LimitRules with ids instead of names; names that do not exist are left out.
struct ResolvedRules {
  UserLimits everyone;
  std::map<gid_t, UserLimits> groups;
  std::map<uid_t, UserLimits> users;
};

}  // namespace gpurota
