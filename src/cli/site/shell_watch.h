// For a shell with the variables of a reservation (`eval "$(gpurota reserve)"`), in which nothing
// else of gpurota runs: reports on the terminal what happens to the reservation, and once that the
// reservation is over.
#pragma once

#include "base/ids.h"
#include "client/locate.h"

namespace gpurota::cli {

// Forks a process in a session of its own that reports on standard error. The process lives as long
// as the reservation and the calling shell, our parent. Does nothing unless standard error is a
// terminal and standard output is not, as when a shell evaluates the output.
void watch_for_shell(const client::Location& location, LeaseId lease);

}  // namespace gpurota::cli
