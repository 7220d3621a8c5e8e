// Changes an engine's command (docker run …) so that its container is in a lease.
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

// kInvalid: an engine's command that cannot run under a lease, with what to write instead.
// `reserved`: the lease continues without the command.
Result<void> check_engine_call(const std::vector<std::string>& command, bool reserved);

struct Contained {
  std::vector<std::string> words;          // argv
  std::vector<proto::Variable> variables;  // for the engine
  std::optional<std::string> library;      // the libgpurota.so that the container loads
  std::string remark;                      // for -v
  // Called when the engine's command has ended; null: nothing to do.
  std::unique_ptr<ContainerEnd> end;
};

// Asks the daemon for what the lease's containers need, and reads the driver's files.
Result<Contained> contain(client::Connection& connection, LeaseId lease, const EngineCall& call,
                          const std::vector<std::string>& command);

}  // namespace gpurota::cli
