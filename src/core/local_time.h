// A time as people of this machine read it. Pure, but for the time zone.
#pragma once

#include "core/time.h"

#include <string>

namespace gpurota {

// "09:00" today, "Mon 09:00" within six days, "Mon 30 Nov 09:00" beyond.
std::string local_time_text(WallTime time, WallTime now);

}  // namespace gpurota
