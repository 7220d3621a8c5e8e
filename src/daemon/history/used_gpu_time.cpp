#include "daemon/history/used_gpu_time.h"

namespace gpurota::daemon {

std::optional<std::chrono::seconds> UsedGpuTime::gpu_time_of(uid_t uid, WallTime from) {
  const auto sums = recorder_.usage_of(uid, from, wall_clock_());
  // While the history cannot be read, its last answer is accurate enough.
  if (const auto known = known_.find(uid); !sums && known != known_.end()) return known->second;
  if (!sums || sums->empty()) return std::nullopt;
  std::chrono::milliseconds total{0};
  for (const ports::UsageSum& sum : *sums) {
    const bool filler = sum.key == to_string(LeaseKind::kFiller);
    if (filler && !config_.filler.count_against_limits) continue;
    total += std::chrono::milliseconds(sum.gpu_ms);
  }
  return known_[uid] = std::chrono::duration_cast<std::chrono::seconds>(total);
}

}  // namespace gpurota::daemon
