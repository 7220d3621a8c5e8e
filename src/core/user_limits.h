// How much of the machine one user may have: plain data from the configuration.
//
// Filled by config, resolved to ids by the daemon's Accounts, read by lease/allowance.h. An empty
// field says nothing: the next rule counts. kUnlimited lifts what a broader rule set.
#pragma once

#include "base/bytes.h"

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
  std::optional<int> priority;                   // the highest that a lease of theirs has
  std::optional<int> weight;                     // of their turns, beside others
  std::optional<Bytes> pinned;  // host RAM that evicted memory of theirs may be pinned in
  std::optional<std::chrono::seconds> book_ahead;  // how far ahead a booking may begin
  std::optional<int> bookings;                     // that have not begun

  bool operator==(const UserLimits&) const = default;
};

// The limits where no rule says anything. Requests wait in the daemon's memory, so their number has
// an end; a booking keeps GPUs from others before anybody uses them; the rest a site decides.
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
  return limits;
}

// As written: by names, which may be numbers.
struct LimitRules {
  UserLimits everyone;
  std::map<std::string, UserLimits> groups;
  std::map<std::string, UserLimits> users;
  bool operator==(const LimitRules&) const = default;
};

// The same with the ids of those that exist.
struct ResolvedRules {
  UserLimits everyone;
  std::map<gid_t, UserLimits> groups;
  std::map<uid_t, UserLimits> users;
};

}  // namespace gpurota
