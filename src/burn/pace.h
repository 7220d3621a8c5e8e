// Chooses the amount of work in one step of `gpurota burn`, so that a step takes the target time on
// any GPU: short enough that the GPU is quickly released, long enough that it is never idle. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gpurota::burn {

class Pace {
 public:
  Pace(double target_ms, std::uint32_t most) : target_ms_(target_ms), most_(most) {}

  std::uint32_t amount() const { return amount_; }

  // Takes the time of a step of `amount`. The next amount is at most twice, and at least half as
  // much: one slow step (another lease's turn on the GPU) means little.
  void on_measured(std::uint32_t amount, double took_ms) {
    const double ratio = std::clamp(target_ms_ / std::max(took_ms, 1e-3), 0.5, 2.0);
    const double next = std::clamp(static_cast<double>(amount) * ratio, 1.0, double{1e9});
    amount_ = std::min(std::max(static_cast<std::uint32_t>(next), std::uint32_t{1}), most_);
  }

 private:
  double target_ms_;
  std::uint32_t most_;
  std::uint32_t amount_ = 1;
};

}  // namespace gpurota::burn
