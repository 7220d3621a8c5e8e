// The share of a GPU's compute time that a lease is promised while other leases on that GPU have
// work, too. In percent; 0: none is promised. Pure.
#pragma once

#include "base/result.h"

#include <string_view>

namespace gpurota {

// The most that all leases on one GPU are promised together. The rest is for leases without a
// share.
constexpr int kMostComputeShare = 95;

// "30%" or "30": from 1 to kMostComputeShare. "0" and "0%": none.
Result<int> parse_compute_share(std::string_view text);

// Of a lease: what check_compute_share() has to know about it.
struct ComputeTerms {
  bool limited = false;  // it has a limit of memory
  bool swap = false;
  bool filler = false;
  bool interactive = false;
  int gpus = 1;
};
// kInvalid says what to ask for instead. Every lease can be without a share.
Result<void> check_compute_share(int percent, const ComputeTerms& terms);

}  // namespace gpurota
