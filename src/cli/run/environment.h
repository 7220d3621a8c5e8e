// The environment of the command: what was inherited, with what belongs to a lease replaced by what
// the daemon wants set.
#pragma once

#include "base/result.h"
#include "proto/methods.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::cli {

struct CommandEnvironment {
  std::vector<std::string> variables;  // "NAME=value", byte-exact
  std::vector<std::string> remarks;    // for -v: what was overridden or added to
  std::string
      chosen_gpus{};  // that GPUs which the user had chosen are not those of the lease; or empty
};

// `inherited` is environ. Variables that belong to a lease are left out. LD_PRELOAD keeps its other
// entries, behind the library of the reply. `outer`: the value of CUDA_VISIBLE_DEVICES in the
// shell's lease, if known: the user has not chosen that value.
CommandEnvironment command_environment(const char* const* inherited,
                                       const proto::Acquire::Reply& reply,
                                       const std::optional<std::string>& outer = std::nullopt);

// Whether the dynamic linker will really load it into programs that we start: without it they would
// have no limit.
Result<void> check_preload(const std::string& library);

}  // namespace gpurota::cli
