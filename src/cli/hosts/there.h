// Runs gpurota on another machine with our standard streams: `run --host`, `top --host`. Takes over
// the signals of this process.
#pragma once

#include "cli/hosts/remote_line.h"

namespace gpurota::cli {

// Returns the exit status of gpurota there. If ssh failed: prints that, and returns kExitRunFailed.
// A signal to this process ends ssh and, as without --host, this process.
int run_there(const RemoteRun& run);

// Whether standard input and output are both terminals, so that the program there gets one, too.
bool has_terminal();

}  // namespace gpurota::cli
