// Times for people: reading and writing them. Pure, but for the time zone.
#pragma once

#include "base/result.h"
#include "core/time.h"

#include <chrono>
#include <string>
#include <string_view>

namespace gpurota::cli {

// "30s", "10m", "2h", "1d", "1h30m", "1.5h": from a second to ten years. kInvalid says what to
// write.
Result<std::chrono::seconds> parse_duration(std::string_view text);
// "1 h 30 min", "45 s".
std::string duration_text(std::chrono::seconds duration);
// "45s", "12m", "2h05m", "3d04h"; never negative.
std::string span_text(WallTime::duration span);
// "14:05" today, "Nov 20 14:05" on another day.
std::string clock_text(WallTime time, WallTime now);

}  // namespace gpurota::cli
