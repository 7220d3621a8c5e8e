// "--since 2h", "--since 2026-11-21": a past time, written by people. Pure, but for the time zone.
#pragma once

#include "base/result.h"
#include "core/time.h"

#include <string>
#include <string_view>

namespace gpurota::cli {

// "90s", "30m", "2h", "7d" before `now`; "2026-11-21" and "2026-11-21 14:05" in local time; RFC
// 3339 in UTC; no later than now. kInvalid names `option` and says what to write.
Result<WallTime> parse_since(std::string_view option, const std::string& text, WallTime now);

// "Nov 21 14:05:32", local.
std::string local_time(WallTime time, const char* format = "%b %e %H:%M:%S");

}  // namespace gpurota::cli
