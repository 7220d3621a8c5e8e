// The environment of the command: what the daemon wants set, on top of what was inherited.
#pragma once

#include "base/result.h"
#include "proto/methods.h"

#include <string>
#include <vector>

namespace gpurota::cli {

struct CommandEnvironment {
  std::vector<std::string> variables;  // "NAME=value", byte-exact
  std::vector<std::string> remarks;    // for -v: what was overridden or added to
};

// `inherited` is environ. LD_PRELOAD keeps what it had, behind the library of the reply.
CommandEnvironment command_environment(const char* const* inherited,
                                       const proto::Acquire::Reply& reply);

// Whether the dynamic linker will really load it into programs that we start: without it they would have
// no limit.
Result<void> check_preload(const std::string& library);

}  // namespace gpurota::cli
