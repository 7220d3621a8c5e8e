// What `gpurota job update` asks for when it changes options of `gpurota run`: those the job's next
// start is made of, and what of them concerns the lease that it has. Pure; see job.cpp.
#pragma once

#include "base/result.h"
#include "proto/methods.h"

#include <string>
#include <vector>

namespace gpurota::cli {

struct ChangedOptions {
  proto::UpdateJob call;
  bool now = false;    // something of it holds for the lease that there is
  bool later = false;  // something of it holds from the next start only
};

// `change` over `before`, both as they were written.
Result<ChangedOptions> change_options(const std::vector<std::string>& before,
                                      const std::vector<std::string>& change);

}  // namespace gpurota::cli
