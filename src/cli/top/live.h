// `gpurota top` on a terminal, until it is ended: samples the daemon every second, and does what
// keys say. One thread.
#pragma once

#include "cli/commands.h"

namespace gpurota::cli::topview {

// `ascii`: the terminal's characters are not UTF-8. The exit status.
int run_live(const Context& context, bool ascii);

}  // namespace gpurota::cli::topview
