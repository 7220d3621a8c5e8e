// Reads a machine file (TOML) into the state a simulated machine starts from.
//
// Used by gpurota-sim only: the libraries map the result and know no TOML.
#pragma once

#include "base/result.h"
#include "sim/state/layout.h"

#include <string>

namespace gpurota::sim {

// Errors name the file, the line and the key.
Result<void> read_machine_file(const std::string& path, MachineState* out);

// A path as it is (it has a slash or ends in .toml), or the name of an installed machine.
Result<std::string> find_machine(const std::string& path_or_name);
// Where installed machines are: next to the program, in the build tree, then the install prefix.
std::string machines_directory();

}  // namespace gpurota::sim
