// The order of the queue by its users' recent use (docs/design/fair-share.md). Pure. The daemon
// orders the queue before each decision; the code that decides only sees the order.
#pragma once

#include "base/ids.h"
#include "core/time.h"

#include <chrono>
#include <string>

namespace gpurota::lease {

// The use that a user has had, and the user's weight in relation to others.
struct FairShare {
  std::chrono::seconds used{};  // GPU time, decayed
  int weight = 1;
  std::string group;  // its use counts before the user's; empty: none
  std::chrono::seconds group_used{};
  int group_weight = 1;
  bool operator==(const FairShare&) const = default;
};

// A request's claim to a place.
struct Claim {
  RequestId id;
  FairShare share;
  bool overdue = false;  // it has waited so long that no later request overtakes it
  WallTime since{};      // when it came; a job that left for a booking keeps its old time
};

// A strict order. Overdue requests come first, the oldest before others. All other requests are
// ordered by their group's use divided by its weight (the least first), then by their user's use
// divided by the user's weight, then by age.
bool goes_before(const Claim& a, const Claim& b);

// How much of a use, spread evenly from `since` to `until`, still counts at `now`.
double decayed(double used, WallTime since, WallTime until, WallTime now,
               std::chrono::seconds half_life);
// How much of a use still counts after `passed`.
double decayed(double used, WallTime::duration passed, std::chrono::seconds half_life);

}  // namespace gpurota::lease
