// The sockets at which systemd listens for the daemon (gpurotad.socket): who connects while no
// daemon runs waits there for the next one. Called once, at start, before there are threads.
#pragma once

#include "base/fd.h"
#include "base/result.h"

#include <string>
#include <vector>

namespace gpurota::sys {

// The passed socket that listens at each of `paths`, in their order; none where it was not passed.
// The sockets are close-on-exec, and the environment names them no longer. kInvalid, with what to
// do, if something else was passed: nobody would answer those who wait there.
Result<std::vector<Fd>> take_passed_sockets(const std::vector<std::string>& paths);

}  // namespace gpurota::sys
