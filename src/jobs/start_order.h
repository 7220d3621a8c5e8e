// An order in which each job comes after the jobs that it names, and else in the order of adding.
// Used for starts at boot (--boot-after), and to find cycles in chains (chain.h). Pure.
#pragma once

#include "base/result.h"

#include <string>
#include <vector>

namespace gpurota::jobs {

struct Ordered {
  std::string name;
  std::vector<std::string> after;  // names; a name without a job counts as absent
};

// Indices into `jobs`, which are in the order in which they were added. kInvalid: jobs wait for
// each other in a cycle, whose names are in the message. `option`: the option that names the jobs.
Result<std::vector<std::size_t>> start_order(const std::vector<Ordered>& jobs,
                                             const char* option = "--boot-after");

}  // namespace gpurota::jobs
