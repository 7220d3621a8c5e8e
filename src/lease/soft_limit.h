// The pace of grants above a lease's soft limit. A part of Account. Pure.
#pragma once

#include "base/bytes.h"
#include "core/time.h"

#include <algorithm>
#include <optional>

namespace gpurota::lease {

struct SoftLimit {
  std::optional<Bytes> limit;
  Duration throttle{};     // between two grants above `limit`; zero: none
  TimePoint next_grant{};  // the earliest time of the next grant above `limit`

  // Whether grants that bring the charge to this value are exact and delayed.
  bool is_throttled(Bytes charge) const {
    return throttle != Duration::zero() && limit && charge > *limit;
  }
  // For a throttled request: whether it must wait. The first call sets `until`, the earliest time
  // of the grant.
  bool has_to_wait(std::optional<TimePoint>& until, TimePoint arrived, TimePoint now) {
    if (!until) until = std::max(arrived + throttle, next_grant);
    if (now < *until) return true;
    next_grant = now + throttle;
    return false;
  }
};

}  // namespace gpurota::lease
