// Texts about a lease's work in the last minute: for how long the work was held back, for whom, and
// how much of its GPU's time the lease got. Pure.
#pragma once

#include "proto/methods.h"

#include <string>

namespace gpurota::cli {

// "34 % of the last minute, for L3 (interactive)"; with more than one, how much for each: "for L3
// (interactive) 20 %, L4 14 %". Empty: nothing was held back.
std::string held_back_text(const proto::Lease& lease);
// "31 % in the last minute, and wants more"; empty: its GPU's time is not divided.
std::string got_text(const proto::Lease& lease);
// "12 % of the last minute": how long work waited because of the lease's own upper bound. Empty:
// the work did not wait.
std::string bounded_text(const proto::Lease& lease);
// For a narrow column: "held back 34% for L3". Empty if that is less than 10 %.
std::string short_held_text(const proto::Lease& lease);

}  // namespace gpurota::cli
