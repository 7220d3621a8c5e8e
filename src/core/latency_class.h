// The latency class of a lease: whether its programs have to answer at once. Pure.
#pragma once

#include "base/result.h"

#include <optional>
#include <string_view>

namespace gpurota {

enum class LatencyClass { kNormal, kInteractive };

// "normal", "interactive": for people, the store and the protocol; stable.
const char* to_string(LatencyClass latency);
std::optional<LatencyClass> parse_latency_class(std::string_view word);

// The facts about a lease that check_latency() needs.
struct LatencyTerms {
  bool shares_gpus = false;  // a slice or a swap lease
  bool filler = false;
};
// kInvalid says what to ask for instead. Every lease can be normal.
Result<void> check_latency(LatencyClass latency, const LatencyTerms& terms);

}  // namespace gpurota
