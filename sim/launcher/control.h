// Looking at a simulated machine and changing it while it runs. Each returns an exit code.
#pragma once

#include <string>
#include <vector>

namespace gpurota::sim {

int list_machines();
// The machine in `dir`, or in $GPUROTA_SIM_DIR when it is empty; so for all below.
int show_machine(const std::string& dir);
int change_machine(const std::string& dir, const std::vector<std::string>& settings);
int show_unsupported(const std::string& dir);

}  // namespace gpurota::sim
