// How long to wait before the next attempt: longer after each failure, up to a bound, and random,
// so that not all nodes try at the same time. Pure.
#pragma once

#include "core/time.h"

#include <algorithm>
#include <cstdint>

namespace gpurota::kube {

class BackOff {
 public:
  BackOff(Duration first, Duration longest) : first_(first), longest_(longest) {}

  // The next pause. `random`: any number; it selects a pause between half of the full pause and all
  // of it.
  Duration next(std::uint64_t random) {
    pause_ = std::clamp(2 * pause_, first_, longest_);
    constexpr std::uint64_t kSteps = 1024;
    return pause_ / 2 + pause_ / 2 * static_cast<std::int64_t>(random % kSteps) /
                            static_cast<std::int64_t>(kSteps);
  }
  void reset() { pause_ = {}; }

 private:
  const Duration first_, longest_;
  Duration pause_{};
};

}  // namespace gpurota::kube
