// Runs a command on a simulated machine, and removes the machine afterwards.
#pragma once

#include <string>

namespace gpurota::sim {

// Becomes `command`, with its pid, signals and exit code, on the machine in `dir`. If there is no
// machine yet, makes one from the machine file. With an empty `dir`, makes the machine in a new
// directory, which is removed when the last process that could use it has ended. Returns only on
// failure: prints the reason and returns 125, 126 or 127, as a shell does. `for_all`: a machine
// made in `dir` is for all users.
int run_command(const std::string& machine, const std::string& dir, bool for_all, char** command);

}  // namespace gpurota::sim
