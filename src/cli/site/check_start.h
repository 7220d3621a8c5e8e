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

// What the caller should know of it, mostly nothing. kInvalid, with what to write instead, where it
// could not begin. Reads the file system as the caller, as whom it will run.
Result<std::string> check_start(const Start& start);

}  // namespace gpurota::cli
