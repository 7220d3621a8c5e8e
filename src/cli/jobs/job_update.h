// The call of `gpurota job update` that changes options of `gpurota run`: all options for the job's
// next start, and the values that can change its present lease. Pure; see job.cpp.
#pragma once

#include "base/result.h"
#include "proto/methods.h"

#include <string>
#include <vector>

namespace gpurota::cli {

struct ChangedOptions {
  proto::UpdateJob call;
  bool now = false;    // some of the change holds for the present lease
  bool later = false;  // some of the change holds from the next start only
};

// `change` applied to `before`. Both are options as they were written.
Result<ChangedOptions> change_options(const std::vector<std::string>& before,
                                      const std::vector<std::string>& change);

}  // namespace gpurota::cli
