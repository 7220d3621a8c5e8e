// Reads a machine file (TOML) into the initial state of a simulated machine.
//
// Used by gpurota-sim only: the libraries map the resulting state and do not read TOML.
#pragma once

#include "base/result.h"
#include "sim/state/layout.h"

#include <string>

namespace gpurota::sim {

// Errors name the file, the line and the key.
Result<void> read_machine_file(const std::string& path, MachineState* out);

// `path_or_name` itself if it has a slash or ends in .toml, else the file of the installed machine
// with that name.
Result<std::string> find_machine(const std::string& path_or_name);
// The folder of the installed machines: beside the program in a build tree, else below the install
// prefix.
std::string machines_directory();

}  // namespace gpurota::sim
