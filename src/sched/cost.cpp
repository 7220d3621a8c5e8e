#include "sched/cost.h"

#include "sched/seconds.h"

#include <algorithm>
#include <cmath>

namespace gpurota::sched {
namespace {

constexpr Duration kShortestPause = std::chrono::milliseconds(5);

Duration shortest_of(std::size_t scale) { return kShortestPause * (1 << scale); }

}  // namespace

MoveCost::MoveCost() : log_rate_(std::log(40.0 * 1024 * 1024 * 1024)) {}

void MoveCost::measure(Bytes moved, Duration took) {
  const double s = std::max(seconds(took), 1e-6);
  if (!tells_rate(moved)) {
    overhead_.add(s);
    return;
  }
  const double rest = std::max(s - (overhead_.known() ? overhead_.value() : 0), s / 2);
  log_rate_ += (std::log(static_cast<double>(moved.count()) / rest) - log_rate_) * 0.3;
}

Duration MoveCost::estimate(Bytes moved) const {
  return from_seconds(static_cast<double>(moved.count()) / std::exp(log_rate_) +
                      (overhead_.known() ? overhead_.value() : 0));
}

Duration quantum_for(Duration cost, const Settings& settings) {
  const double share = std::clamp(settings.moving_share, 0.001, 0.9);
  const Duration turn = from_seconds(seconds(cost) * (1 - share) / share);
  return std::clamp(turn, settings.least_quantum, settings.most_quantum);
}

void Pauses::add(Duration pause) {
  constexpr double kRemembered = 0.8;
  if (pause < kShortestPause) return;
  std::size_t scale = 0;
  while (scale + 1 < kScales && pause >= shortest_of(scale + 1)) ++scale;
  for (std::size_t reached = 0; reached <= scale; ++reached) {
    for (double& weight : weights_[reached]) weight *= kRemembered;
    weights_[reached][scale] += 1;
  }
}

Duration Pauses::before_release(Duration price, const Settings& settings) const {
  const Duration most = std::max(settings.idle_release, price);
  for (std::size_t scale = 0; scale < kScales; ++scale) {
    const Duration idle = std::max(settings.idle_release, shortest_of(scale));
    if (idle >= most) break;
    double as_long = 0;
    double outlast = 0;
    for (std::size_t i = scale; i < kScales; ++i) {
      as_long += weights_[scale][i];
      if (shortest_of(i) >= idle + price) outlast += weights_[scale][i];
    }
    if (outlast > 0 && 2 * outlast >= as_long) return idle;
  }
  return most;
}

}  // namespace gpurota::sched
