// The times below a graph. Pure, but for the time zone.
#pragma once

#include "core/time.h"

#include <cstddef>
#include <string>
#include <vector>

namespace gpurota::cli {

// A label that begins at `column`; empty if there is no room for it.
struct TimeTick {
  std::size_t column = 0;
  std::string label;
};

// Round times ("10:05", "Nov 27 12:00", "Nov 27") for a span that is `columns` wide, as close
// together as their labels allow.
std::vector<TimeTick> time_ticks(WallTime since, WallTime until, std::size_t columns);

}  // namespace gpurota::cli
