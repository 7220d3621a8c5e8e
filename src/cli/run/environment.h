// The environment of the command: the inherited one, with the variables of a lease replaced by
// those from the daemon.
#pragma once

#include "base/result.h"
#include "proto/methods.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::cli {

struct CommandEnvironment {
  std::vector<std::string> variables;  // "NAME=value", byte-exact
  std::vector<std::string> remarks;    // for -v: what was overridden or extended
  std::string chosen_gpus{};  // warning: the user's own choice of GPUs is not the lease's; or empty
};

// `inherited` is environ. Variables that belong to a lease are left out. LD_PRELOAD keeps its other
// entries, after the library of the reply. `outer`: the value of CUDA_VISIBLE_DEVICES in the
// shell's lease, if known; that value is not the user's own choice.
CommandEnvironment command_environment(const char* const* inherited,
                                       const proto::Acquire::Reply& reply,
                                       const std::optional<std::string>& outer = std::nullopt);

// Checks that the dynamic linker will load the library into programs that we start: without it they
// would not be limited.
Result<void> check_preload(const std::string& library);

}  // namespace gpurota::cli
