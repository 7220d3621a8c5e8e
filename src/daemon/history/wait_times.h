// A histogram for metrics: how long requests waited until they got a lease from the queue. Waits
// that ended otherwise are not counted. State thread only.
#pragma once

#include "core/time.h"
#include "proto/methods.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

namespace gpurota::daemon {

class WaitTimes {
 public:
  static constexpr std::array<std::int64_t, 8> kBounds = {1, 10, 60, 300, 1800, 7200, 28800, 86400};

  void add(std::chrono::milliseconds waited) {
    // If the clock was set back, the wait counts as zero.
    const auto ms = std::max<std::int64_t>(waited.count(), 0);
    std::size_t step = 0;
    while (step < kBounds.size() && ms > kBounds[step] * 1000) ++step;
    ++counts_[step];
    total_ms_ += ms;
  }
  proto::Waits get() const {
    return {{kBounds.begin(), kBounds.end()}, {counts_.begin(), counts_.end()}, total_ms_ / 1000};
  }

 private:
  std::array<std::uint64_t, kBounds.size() + 1> counts_{};
  std::int64_t total_ms_ = 0;
};

}  // namespace gpurota::daemon
