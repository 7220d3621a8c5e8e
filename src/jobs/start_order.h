// An order of jobs in which each comes after those that it names, else as they were added: in which
// they are started at boot (--boot-after), and whether a chain (chain.h) has an end. Pure.
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
// their circle, where jobs wait for each other. `option`: by which they are named.
Result<std::vector<std::size_t>> start_order(const std::vector<Ordered>& jobs,
                                             const char* option = "--boot-after");

}  // namespace gpurota::jobs
