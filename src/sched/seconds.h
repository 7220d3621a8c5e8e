// Durations as the formulas of the turn scheduler count them. Pure; used in src/sched only.
#pragma once

#include "core/time.h"

#include <algorithm>
#include <chrono>

namespace gpurota::sched {

inline double seconds(Duration d) { return std::chrono::duration<double>(d).count(); }

// At most a day: what a formula makes of odd numbers stays a time that can be added to another.
inline Duration from_seconds(double s) {
  constexpr double kDay = 86400;
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::clamp(s, 0.0, kDay)));
}

}  // namespace gpurota::sched
