// Future times, as people write them. Pure, but for the time zone.
#pragma once

#include "base/result.h"
#include "core/time.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::cli {

// The first such time after `after`: "18:00", "Mon 09:00", "tomorrow 09:00", "2026-11-30 09:00",
// "+2h". kInvalid says what to write, even for a time that the clock skips on that day.
Result<WallTime> parse_when(const char* option, const std::string& text, WallTime after);

// `count` times, a week apart, each at the same time of day, even over a clock change.
std::vector<WallTime> weekly(WallTime first, int count);

// "Mon 23 Nov".
std::string day_text(WallTime time);
// The midnight at which the day of `time` begins, moved by `days` days.
WallTime day_of(WallTime time, int days = 0);

}  // namespace gpurota::cli
