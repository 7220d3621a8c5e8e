#include "sched/cost.h"

#include <algorithm>

namespace gpurota::sched {
namespace {

double seconds(Duration d) { return std::chrono::duration<double>(d).count(); }

Duration from_seconds(double s) {
  constexpr double kDay = 86400;
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::clamp(s, 0.0, kDay)));
}

}  // namespace

void MoveCost::measure(Bytes moved, Duration took) {
  const double s = std::max(seconds(took), 1e-6);
  if (moved < kLeastForRate) {
    overhead_.add(s);
    return;
  }
  const double rest = std::max(s - (overhead_.known() ? overhead_.value() : 0), s / 2);
  rate_.add(static_cast<double>(moved.count()) / rest);
}

Duration MoveCost::estimate(Bytes moved) const {
  const double rate = rate_.known() ? rate_.value() : kFirstRate;
  return from_seconds(static_cast<double>(moved.count()) / rate +
                      (overhead_.known() ? overhead_.value() : 0));
}

Duration quantum_for(Duration cost, const Settings& settings) {
  const double share = std::clamp(settings.moving_share, 0.001, 0.9);
  const Duration turn = from_seconds(seconds(cost) * (1 - share) / share);
  return std::clamp(turn, settings.least_quantum, settings.most_quantum);
}

Duration pause_before_release(Duration round_trip, const Average& pauses,
                              const Settings& settings) {
  const bool long_pauses = pauses.known() && pauses.value() >= seconds(round_trip);
  return long_pauses ? settings.idle_release : std::max(settings.idle_release, round_trip);
}

}  // namespace gpurota::sched
