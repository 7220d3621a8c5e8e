// How much work one step of `gpurota burn` is, so that it takes about as long as it should on any
// GPU: short enough that the GPU is quickly given up, long enough that it is never idle. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gpurota::burn {

class Pace {
 public:
  Pace(double target_ms, std::uint32_t most) : target_ms_(target_ms), most_(most) {}

  std::uint32_t amount() const { return amount_; }

  // `amount` took so long. At most twice or half as much the next time: one slow step (somebody
  // else's turn on the GPU) says little.
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
