#include "core/park_state.h"

namespace gpurota {

const char* to_string(ParkState state) {
  switch (state) {
    case ParkState::kNone:
      return "";
    case ParkState::kParking:
      return "parking";
    case ParkState::kParked:
      return "parked";
    case ParkState::kUnparking:
      return "unparking";
    case ParkState::kWaiting:
      return "waiting";
  }
  return "";
}

std::optional<ParkState> parse_park_state(std::string_view word) {
  for (const ParkState each : {ParkState::kNone, ParkState::kParking, ParkState::kParked,
                               ParkState::kUnparking, ParkState::kWaiting}) {
    if (word == to_string(each)) return each;
  }
  return std::nullopt;
}

}  // namespace gpurota
