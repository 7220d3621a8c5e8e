// Whether the processes of a lease are on their GPUs, or parked in host memory
// (docs/design/park.md). Pure.
#pragma once

#include <optional>
#include <string_view>

namespace gpurota {

// kParking, kUnparking: on the way there and back.
enum class ParkState { kNone, kParking, kParked, kUnparking };

// "parking", …; empty for kNone: for the store and the protocol; stable.
const char* to_string(ParkState state);
std::optional<ParkState> parse_park_state(std::string_view word);

}  // namespace gpurota
