#include "sys/clock.h"

namespace gpurota::sys {

TimePoint monotonic_now() { return std::chrono::steady_clock::now(); }

WallTime wall_now() {
  return std::chrono::time_point_cast<WallTime::duration>(std::chrono::system_clock::now());
}

}  // namespace gpurota::sys
