// Whether the processes of a lease are on their GPUs, or parked in host memory
// (docs/design/park.md). Pure.
#pragma once

#include <optional>
#include <string_view>

namespace gpurota {

// kParking, kUnparking: the processes are leaving their GPUs, or are returning to them. kWaiting:
// parked, and to be brought back as soon as there is room for its memory.
enum class ParkState { kNone, kParking, kParked, kUnparking, kWaiting };

// Whether the processes are off their GPUs, and stay off until something else happens.
constexpr bool is_off(ParkState state) {
  return state == ParkState::kParked || state == ParkState::kWaiting;
}
// Whether the memory of the lease counts on its GPUs. The memory of a lease that waits counts, so
// that no later request gets its room.
constexpr bool counts_on_gpus(ParkState state) { return state != ParkState::kParked; }

// "parking", …; empty for kNone: for the store and the protocol; stable.
const char* to_string(ParkState state);
std::optional<ParkState> parse_park_state(std::string_view word);

}  // namespace gpurota
