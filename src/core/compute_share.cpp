#include "core/compute_share.h"

#include "base/text.h"

#include <fmt/format.h>

#include <charconv>
#include <string>

namespace gpurota {

Result<int> parse_compute_share(std::string_view text) {
  std::string_view digits = text;
  if (digits.ends_with('%')) digits.remove_suffix(1);
  int percent = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), percent);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  if (whole && percent >= 0 && percent <= kMostComputeShare) return percent;
  return fail(Code::kInvalid,
              fmt::format("'{}' is not a share of a GPU's compute time: write a whole number of "
                          "percent from 1 to {}, such as 30%",
                          display_text(std::string(text), 40), kMostComputeShare));
}

Result<void> check_compute_share(int percent, const ComputeTerms& terms) {
  if (percent == 0) return {};
  if (percent < 0 || percent > kMostComputeShare) {
    return fail(Code::kInvalid,
                fmt::format("a share of a GPU's compute time is 1 % to {} %", kMostComputeShare));
  }
  if (terms.filler) {
    return fail(Code::kInvalid,
                "a filler leaves as soon as somebody needs the GPU, so it has no share of the "
                "compute time: leave out --compute");
  }
  if (terms.swap) {
    return fail(Code::kInvalid,
                "--swap takes turns, so --compute cannot be combined with it: leave out --swap and "
                "give --memory, or leave out --compute");
  }
  if (!terms.limited) {
    return fail(Code::kInvalid,
                "a whole GPU has all of its compute time: add --memory 8G to share the GPU, or "
                "leave out --compute");
  }
  if (terms.gpus > 1) {
    return fail(Code::kInvalid,
                "only leases of one GPU can have a share of its compute time so far: ask for one "
                "GPU, or leave out --compute");
  }
  if (!terms.interactive) return {};
  return fail(Code::kInvalid,
              "an interactive lease has no share of the compute time, because others hold back "
              "their work for it anyway: leave out --latency interactive or --compute");
}

}  // namespace gpurota
