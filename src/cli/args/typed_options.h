// Which options of `gpurota run` a user has typed: in a shell that has a lease they decide, and the
// user's defaults do not. Pure.
#pragma once

#include "cli/raw.h"

#include <string>
#include <vector>

namespace gpurota::cli {

struct TypedOptions {
  std::vector<std::string> placement;  // which say what GPUs, and how much of them: "--gpus"
  std::vector<std::string> of_lease;   // which are about a new lease otherwise: "--note"
  bool timeout = false, until = false;
};
// Of what was typed, before the user's defaults are added.
TypedOptions typed_options(const Raw& raw);

}  // namespace gpurota::cli
