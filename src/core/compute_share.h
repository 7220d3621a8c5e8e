// The share of a GPU's compute time that a lease is promised while other leases on that GPU have
// work, too, and the most that it gets of that time. Pure.
#pragma once

#include "base/result.h"

#include <string_view>

namespace gpurota {

// The most that all leases on one GPU are promised together. The rest is for leases without a
// share.
constexpr int kMostComputeShare = 95;
// As people and the protocol write that there is no upper bound.
constexpr int kNoComputeBound = 100;

// In percent; 0: nothing is promised, or there is no bound.
struct ComputeShare {
  int least = 0;
  int most = 0;
  bool operator==(const ComputeShare&) const = default;
};

// "30%" or "30": from 1 to kMostComputeShare. "0" and "0%": none.
Result<int> parse_compute_share(std::string_view text);
// "50%" or "50": from 1 to kNoComputeBound.
Result<int> parse_compute_bound(std::string_view text);
// Of a written bound: 0 for kNoComputeBound.
constexpr int compute_bound(int written) { return written == kNoComputeBound ? 0 : written; }

// Of a lease: what check_compute_share() has to know about it.
struct ComputeTerms {
  bool limited = false;  // it has a limit of memory
  bool swap = false;
  bool filler = false;
  bool interactive = false;
  int gpus = 1;
};
// kInvalid says what to ask for instead. Every lease can be without a share and a bound.
Result<void> check_compute_share(const ComputeShare& share, const ComputeTerms& terms);

}  // namespace gpurota
