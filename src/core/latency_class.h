// The latency class of a lease: whether its programs have to answer at once. Pure.
#pragma once

#include <optional>
#include <string_view>

namespace gpurota {

enum class LatencyClass { kNormal, kInteractive };

// "normal", "interactive": for people, the store and the protocol; stable.
const char* to_string(LatencyClass latency);
std::optional<LatencyClass> parse_latency_class(std::string_view word);

}  // namespace gpurota
