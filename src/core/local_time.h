// A time in this machine's time zone, for people. Pure, but for the time zone.
#pragma once

#include "core/time.h"

#include <ctime>
#include <string>

namespace gpurota {

// Year, month, day, hour and so on, in the time zone of the process.
std::tm local_fields(WallTime time);

// "09:00" today, "Mon 09:00" within six days, "Mon 30 Nov 09:00" beyond.
std::string local_time_text(WallTime time, WallTime now);

}  // namespace gpurota
