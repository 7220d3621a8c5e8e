#include "daemon/users/rate_limiter.h"

#include <algorithm>

namespace gpurota::daemon {

bool RateLimiter::admit(Key key, TimePoint now, std::uint64_t most) {
  auto at = windows_.find(key);
  if (at == windows_.end()) {
    const auto from = windows_.lower_bound(Key{key.uid, "", "", std::nullopt});
    std::size_t own = 0;
    for (auto it = from; it != windows_.end() && it->first.uid == key.uid; ++it) ++own;
    if (own >= kMostPerUser || windows_.size() >= kMost) {
      // There are too many kinds, so count them together.
      key.operation = "other";
      key.error_code = "various";
      key.lease.reset();
      at = windows_.find(key);
    }
  }
  if (at != windows_.end() && now - at->second.begun < kWindow) {
    const bool passes = at->second.passed < most;
    ++(passes ? at->second.passed : at->second.suppressed);
    return passes;
  }
  const std::uint64_t before = at == windows_.end() ? 0 : at->second.suppressed;
  windows_[key] = {now, 1, before};
  return true;
}

std::vector<RateLimiter::Suppressed> RateLimiter::take_counts(TimePoint now) {
  std::vector<Suppressed> counts;
  for (auto it = windows_.begin(); it != windows_.end();) {
    if (now - it->second.begun < kWindow) {
      ++it;
      continue;
    }
    if (it->second.suppressed > 0) counts.push_back({it->first, it->second.suppressed});
    it = windows_.erase(it);
  }
  return counts;
}

std::optional<TimePoint> RateLimiter::next_end() const {
  std::optional<TimePoint> next;
  for (const auto& [key, window] : windows_) {
    if (!next || window.begun + kWindow < *next) next = window.begun + kWindow;
  }
  return next;
}

}  // namespace gpurota::daemon
