// `gpurota burn`: a load of our own on some GPUs, one thread for each, until its time is over or a
// signal ends it. Blocks the signals it waits for; call it once, before any thread is started.
#pragma once

#include "burn/options.h"

namespace gpurota::burn {

// Prints as it goes; the exit status.
int burn(const Options& options);

}  // namespace gpurota::burn
