// Which options of `gpurota run` the user typed: in a shell that has a lease, the typed options
// decide, and the user's defaults have no effect. Pure.
#pragma once

#include "cli/raw.h"

#include <string>
#include <vector>

namespace gpurota::cli {

struct TypedOptions {
  std::vector<std::string> placement;  // options that choose GPUs and memory: "--gpus"
  std::vector<std::string> of_lease;   // other options of a new lease: "--note"
  bool timeout = false, until = false;
};
// The typed options, before the user's defaults are added.
TypedOptions typed_options(const Raw& raw);

}  // namespace gpurota::cli
