#include "core/compute_share.h"

#include "base/text.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>
#include <utility>

namespace gpurota {
namespace {

std::optional<int> whole_percent(std::string_view text) {
  if (text.ends_with('%')) text.remove_suffix(1);
  int percent = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && percent >= 0 ? std::optional(percent) : std::nullopt;
}

// `option`: the one that the lease cannot have.
Result<void> check_terms(const char* option, const ComputeTerms& terms) {
  std::string why;
  if (terms.filler) {
    why = fmt::format(
        "a filler leaves as soon as somebody needs the GPU, so it has no share of the compute "
        "time: leave out {}",
        option);
  } else if (terms.swap) {
    why = fmt::format(
        "--swap takes turns, so {0} cannot be combined with it: leave out --swap and give "
        "--memory, or leave out {0}",
        option);
  } else if (!terms.limited) {
    why = fmt::format(
        "a whole GPU has all of its compute time: add --memory 8G to share the GPU, or leave out "
        "{}",
        option);
  } else if (terms.gpus > 1) {
    why = fmt::format(
        "only leases of one GPU can have a share of its compute time so far: ask for one GPU, or "
        "leave out {}",
        option);
  } else if (terms.interactive) {
    why = fmt::format(
        "an interactive lease has no share of the compute time, because others hold back their "
        "work for it anyway: leave out --latency interactive or {}",
        option);
  }
  return why.empty() ? Result<void>() : fail(Code::kInvalid, std::move(why));
}

}  // namespace

Result<int> parse_compute_share(std::string_view text) {
  const auto percent = whole_percent(text);
  if (percent && *percent <= kMostComputeShare) return *percent;
  return fail(Code::kInvalid,
              fmt::format("'{}' is not a share of a GPU's compute time: write a whole number of "
                          "percent from 1 to {}, such as 30%",
                          display_text(std::string(text), 40), kMostComputeShare));
}

Result<int> parse_compute_bound(std::string_view text) {
  const auto percent = whole_percent(text);
  if (percent && *percent > 0 && *percent <= kNoComputeBound) return *percent;
  return fail(Code::kInvalid,
              fmt::format("'{}' is not an upper bound of a GPU's compute time: write a whole "
                          "number of percent from 1 to 99, such as 50%, or 100% for no bound",
                          display_text(std::string(text), 40)));
}

Result<void> check_compute_share(const ComputeShare& share, const ComputeTerms& terms) {
  if (share.least < 0 || share.least > kMostComputeShare) {
    return fail(Code::kInvalid,
                fmt::format("a share of a GPU's compute time is 1 % to {} %", kMostComputeShare));
  }
  if (share.most < 0 || share.most >= kNoComputeBound) {
    return fail(Code::kInvalid,
                "an upper bound of a GPU's compute time is 1 % to 99 %, or 100 % for no bound");
  }
  if (share.least != 0) GPUROTA_TRY(check_terms("--compute", terms));
  if (share.most != 0) GPUROTA_TRY(check_terms("--compute-max", terms));
  if (share.most == 0 || share.least <= share.most) return {};
  return fail(Code::kInvalid,
              fmt::format("--compute {0}% is above --compute-max {1}%: write --compute {1}%, or "
                          "--compute-max {0}% or more",
                          share.least, share.most));
}

}  // namespace gpurota
