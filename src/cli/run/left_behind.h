// What becomes of what a command leaves to run without it: it is ended with the lease, or was never
// in it. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace gpurota::cli {

// "2 processes that the command left running were ended", with how to do it instead where the
// command hands work to a server. Empty: nothing is to be said. `left`: as the daemon has counted
// them; nothing: it has not. `succeeded`: the command ended with 0.
std::string left_behind_text(const std::vector<std::string>& command, std::optional<int> left,
                             bool succeeded);

}  // namespace gpurota::cli
