// A shell that has the variables of a reservation (`eval "$(gpurota reserve)"`) is told on its
// terminal what happens to it, and once when it is over: nothing else of gpurota runs in such a
// shell.
#pragma once

#include "base/ids.h"
#include "client/locate.h"

namespace gpurota::cli {

// Forks a process of a session of its own that says so on standard error, and lives as long as the
// reservation and the calling shell, our parent. Does nothing unless standard error is a terminal
// and standard output is not, so that a shell takes in what is printed.
void watch_for_shell(const client::Location& location, LeaseId lease);

}  // namespace gpurota::cli
