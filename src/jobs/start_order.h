// In which order jobs are started at boot: each after those that its --after names, else as they
// were added. Pure.
#pragma once

#include "base/result.h"

#include <string>
#include <vector>

namespace gpurota::jobs {

struct Ordered {
  std::string name;
  std::vector<std::string> after;  // names; one that there is no job of is as if it were not there
};

// Indices into `jobs`, which are in the order in which they were added. kInvalid, with the names in
// their circle, where jobs wait for each other.
Result<std::vector<std::size_t>> start_order(const std::vector<Ordered>& jobs);

}  // namespace gpurota::jobs
