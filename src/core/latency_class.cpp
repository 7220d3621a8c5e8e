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
  if (terms.swap) {
    return fail(Code::kInvalid,
                "only a slice can be interactive so far, and --swap takes turns: leave out --swap "
                "and give --memory, or leave out --latency interactive");
  }
  if (terms.limited) return {};
  return fail(Code::kInvalid,
              "only a slice can be interactive so far, and this is for a whole GPU: add --memory "
              "8G, or leave out --latency interactive");
}

}  // namespace gpurota
