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

Result<void> check_latency(LatencyClass latency, const LatencyTerms& terms) {
  if (latency == LatencyClass::kNormal) return {};
  if (terms.filler) {
    return fail(Code::kInvalid,
                "a filler cannot be interactive, because it leaves as soon as somebody needs the "
                "GPU: leave out --latency interactive");
  }
  if (terms.shares_gpus) return {};
  return fail(Code::kInvalid,
              "a program with a whole GPU has no other beside it that could hold back work: add "
              "--memory 8G or --swap, or leave out --latency interactive");
}

}  // namespace gpurota
