// Shows a simulated machine, and changes it while it runs. Each function returns an exit code.
#pragma once

#include <string>
#include <vector>

namespace gpurota::sim {

int list_machines();
// Here and below: the machine in `dir`, or in $GPUROTA_SIM_DIR if `dir` is empty.
int show_machine(const std::string& dir);
int change_machine(const std::string& dir, const std::vector<std::string>& settings);
int show_unsupported(const std::string& dir);

}  // namespace gpurota::sim
