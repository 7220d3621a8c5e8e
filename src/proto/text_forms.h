// Ids and times in the spelling of the control protocol.
#pragma once

#include "base/ids.h"
#include "core/time.h"

#include <optional>
#include <string>
#include <string_view>

namespace gpurota::proto {

// "L12" -> 12; nullopt for anything else ("12", "L0", "L012").
std::optional<LeaseId> parse_lease_id(std::string_view text);
// "R7" -> 7; nullopt for anything else.
std::optional<RequestId> parse_request_id(std::string_view text);

// "2026-11-21T01:19:32.125Z": always UTC, always milliseconds.
std::string format_time(WallTime time);
// Accepts also no fraction, and more digits than milliseconds (cut off). UTC ("Z") only.
std::optional<WallTime> parse_time(std::string_view text);

}  // namespace gpurota::proto
