#include "core/latency_class.h"

namespace gpurota {

const char* to_string(LatencyClass latency) {
  return latency == LatencyClass::kInteractive ? "interactive" : "normal";
}

std::optional<LatencyClass> parse_latency_class(std::string_view word) {
  for (const LatencyClass each : {LatencyClass::kNormal, LatencyClass::kInteractive}) {
    if (word == to_string(each)) return each;
  }
  return std::nullopt;
}

}  // namespace gpurota
