// `gpurota top` on a terminal, until the user quits: asks the daemon every second, and acts on
// keys. One thread.
#pragma once

#include "cli/commands.h"

namespace gpurota::cli::topview {

// `ascii`: the terminal does not show UTF-8. Returns the exit status.
int run_live(const Context& context, bool ascii);

}  // namespace gpurota::cli::topview
