// Checks whether a job or a filler could start at all, as the daemon will start it: with the
// daemon's PATH, in the job's folder.
#pragma once

#include "base/result.h"
#include "proto/methods.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::cli {

// How a command will be started.
struct Start {
  const char* what = "job";  // or "filler"
  const std::vector<std::string>& command;
  const std::optional<std::string>& workdir;  // nothing: the current folder
  const std::vector<proto::Variable>& environment;
};

// Returns a hint for the caller about this start, usually empty. kInvalid, with the remedy, if the
// program could not start. Reads the file system as the caller, who is also the user of the
// program.
Result<std::string> check_start(const Start& start);

}  // namespace gpurota::cli
