// Makes the call for a `gpurota job update` that changes options of `gpurota run`. The call has all
// options for the job's next start, and those of the changed values that can also change its
// present lease. Pure; see job.cpp.
#pragma once

#include "base/result.h"
#include "proto/methods.h"

#include <string>
#include <vector>

namespace gpurota::cli {

struct ChangedOptions {
  proto::UpdateJob call;
  bool now = false;    // a part of the change applies to the present lease
  bool later = false;  // a part of the change applies only from the next start on
};

// `change` applied to `before`. Both are options as they were written.
Result<ChangedOptions> change_options(const std::vector<std::string>& before,
                                      const std::vector<std::string>& change);

}  // namespace gpurota::cli
