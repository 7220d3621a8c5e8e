// Whether a job or a filler could begin at all, checked as the daemon will start it: by its own
// PATH, in its own folder.
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
  const std::optional<std::string>& workdir;  // none: here
  const std::vector<proto::Variable>& environment;
};

// A hint for the caller about this start, mostly empty. kInvalid, with the remedy, if the program
// could not start. Reads the file system as the caller, as whom it will run.
Result<std::string> check_start(const Start& start);

}  // namespace gpurota::cli
