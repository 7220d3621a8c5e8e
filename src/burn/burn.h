// `gpurota burn`: loads some GPUs, with one thread for each, until its time is over or a signal
// ends it. Blocks the signals that it waits for; call it once, before any thread is started.
#pragma once

#include "burn/options.h"

namespace gpurota::burn {

// Prints progress while it runs; returns the exit status.
int burn(const Options& options);

}  // namespace gpurota::burn
