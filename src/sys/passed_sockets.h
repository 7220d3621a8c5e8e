// The sockets on which systemd listens for the daemon (gpurotad.socket): connections made while no
// daemon runs wait for the next one. Called once, at start, before there are threads.
#pragma once

#include "base/fd.h"
#include "base/result.h"

#include <string>
#include <vector>

namespace gpurota::sys {

// For each of `paths`, the passed socket that listens there; an empty Fd if it was not passed. The
// sockets are close-on-exec, and the environment no longer names them. kInvalid, with the remedy,
// if another socket was passed: nobody would accept its connections.
Result<std::vector<Fd>> take_passed_sockets(const std::vector<std::string>& paths);

}  // namespace gpurota::sys
