// Running a command on a simulated machine, and clearing the machine away after it.
#pragma once

#include <string>

namespace gpurota::sim {

// Becomes `command` (so pid, signals and exit code are its own) on the machine in `dir`, which is
// made from the machine file when it is not there yet; in a directory of its own when `dir` is
// empty, which goes when the last process that could use it has gone. Returns only on failure: 125,
// 126 or 127 as a shell, after saying why. `for_all`: a machine that is made in `dir` is for all
// users.
int run_command(const std::string& machine, const std::string& dir, bool for_all, char** command);

}  // namespace gpurota::sim
