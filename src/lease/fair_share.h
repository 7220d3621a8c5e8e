// The order of the queue by its users' recent use (docs/design/fair-share.md). Pure; called by the
// daemon before each decision of the queue, which itself knows nothing of it.
#pragma once

#include "base/ids.h"
#include "core/time.h"

#include <chrono>
#include <string>

namespace gpurota::lease {

// The use that a user has had, and is meant to have beside others.
struct FairShare {
  std::chrono::seconds used{};  // GPU time, decayed
  int weight = 1;
  std::string group;  // whose use counts before that of the user; empty: the user stands alone
  std::chrono::seconds group_used{};
  int group_weight = 1;
  bool operator==(const FairShare&) const = default;
};

// A request's claim to a place.
struct Claim {
  RequestId id;
  FairShare share;
  bool overdue = false;  // it has waited for so long that nobody who comes later passes it
  WallTime since{};      // a job that left for a booking has its old place
};

// A strict order. Overdue ones first; then whose group has had less for its weight; then which user
// has; then who came first.
bool goes_before(const Claim& a, const Claim& b);

// How much of what was used evenly from `since` to `until` still counts `now`.
double decayed(double used, WallTime since, WallTime until, WallTime now,
               std::chrono::seconds half_life);
// How much still counts after so long.
double decayed(double used, WallTime::duration passed, std::chrono::seconds half_life);

}  // namespace gpurota::lease
