// Makes of an engine's command (docker run …) one whose container is in a lease.
#pragma once

#include "base/result.h"
#include "cli/containers/container_end.h"
#include "cli/containers/engine_call.h"
#include "client/connection.h"
#include "proto/methods.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::cli {

// kInvalid: an engine's command that cannot be run under a lease, and what to write instead.
// `reserved`: the lease goes on without it.
Result<void> check_engine_call(const std::vector<std::string>& command, bool reserved);

struct Contained {
  std::vector<std::string> words;          // argv
  std::vector<proto::Variable> variables;  // for the engine
  std::optional<std::string> library;      // that the container loads
  std::string remark;                      // for -v
  // Work to do when the engine's command has ended; null: none.
  std::unique_ptr<ContainerEnd> end;
};

// Asks the daemon for what the lease's containers need, and looks at the driver's files.
Result<Contained> contain(client::Connection& connection, LeaseId lease, const EngineCall& call,
                          const std::vector<std::string>& command);

}  // namespace gpurota::cli
