// Converts durations to and from the seconds of the turn scheduler's formulas. Pure; used in
// src/sched only.
#pragma once

#include "core/time.h"

#include <algorithm>
#include <chrono>

namespace gpurota::sched {

inline double seconds(Duration d) { return std::chrono::duration<double>(d).count(); }

// Clamped to at most a day, so that the result of any formula can be added to a time without
// overflow.
inline Duration from_seconds(double s) {
  constexpr double kDay = 86400;
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::clamp(s, 0.0, kDay)));
}

}  // namespace gpurota::sched
