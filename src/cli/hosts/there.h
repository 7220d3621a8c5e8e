// A gpurota on another machine with our standard streams: `run --host`, `top --host`. Takes the
// signals of this process.
#pragma once

#include "cli/hosts/remote_line.h"

namespace gpurota::cli {

// Returns with the exit status of gpurota there, or kExitRunFailed, having said so, if ssh failed.
// A signal that comes to this process ends ssh and, as it does without --host, this process.
int run_there(const RemoteRun& run);

// Whether standard input and output are both terminals, so that the program there is to have one.
bool has_terminal();

}  // namespace gpurota::cli
