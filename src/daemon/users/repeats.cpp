#include "daemon/users/repeats.h"

#include <algorithm>

namespace gpurota::daemon {

bool Repeats::is_told(Key key, TimePoint now, std::uint64_t most) {
  auto at = windows_.find(key);
  if (at == windows_.end()) {
    const auto from = windows_.lower_bound(Key{key.uid, "", "", std::nullopt});
    std::size_t own = 0;
    for (auto it = from; it != windows_.end() && it->first.uid == key.uid; ++it) ++own;
    if (own >= kMostPerUser || windows_.size() >= kMost) {
      // Too many kinds to tell apart.
      key.operation = "other";
      key.error_code = "various";
      key.lease.reset();
      at = windows_.find(key);
    }
  }
  if (at != windows_.end() && now - at->second.begun < kWindow) {
    const bool told = at->second.told < most;
    ++(told ? at->second.told : at->second.more);
    return told;
  }
  const std::uint64_t before = at == windows_.end() ? 0 : at->second.more;
  windows_[key] = {now, 1, before};
  return true;
}

std::vector<Repeats::Repeated> Repeats::due(TimePoint now) {
  std::vector<Repeated> repeated;
  for (auto it = windows_.begin(); it != windows_.end();) {
    if (now - it->second.begun < kWindow) {
      ++it;
      continue;
    }
    if (it->second.more > 0) repeated.push_back({it->first, it->second.more});
    it = windows_.erase(it);
  }
  return repeated;
}

std::optional<TimePoint> Repeats::next_due() const {
  std::optional<TimePoint> next;
  for (const auto& [key, window] : windows_) {
    if (!next || window.begun + kWindow < *next) next = window.begun + kWindow;
  }
  return next;
}

}  // namespace gpurota::daemon
