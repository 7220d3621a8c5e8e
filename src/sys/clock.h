// The only place where the daemon reads a clock; deciding code gets the time as an argument.
#pragma once

#include "core/time.h"

namespace gpurota::sys {

TimePoint monotonic_now();
WallTime wall_now();

}  // namespace gpurota::sys
