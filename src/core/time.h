// Time as the deciding code sees it: an argument, never a call. Only src/sys reads a clock.
#pragma once

#include <chrono>

namespace gpurota {

// Monotonic: for deadlines and durations. Not comparable across reboots.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;
using Duration = std::chrono::nanoseconds;
// Wall clock: for people, and for what is kept over a restart.
using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::milliseconds>;

}  // namespace gpurota
