// Simulated machines for the tests of `gpurota top`: those of `gpurota status`, with turns, a
// queue, processes and fillers.
#pragma once

#include "cli/top/model.h"

#include <string>
#include <vector>

namespace gpurota::cli::topview::samples {

struct MachineSample {
  std::string name;
  Answers answers;
};

std::vector<MachineSample> all_machines();
// The machine of this name, with a history of two minutes.
Model machine(const std::string& name);

}  // namespace gpurota::cli::topview::samples
