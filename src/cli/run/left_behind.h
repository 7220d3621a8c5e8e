// Text about processes that a command leaves running: they end with the lease, or were never in it.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace gpurota::cli {

// "2 processes that the command left running were ended", with a better way if the command hands
// work to a server. Empty: nothing to report. `left`: the daemon's count; nothing: not counted.
// `succeeded`: the command ended with 0.
std::string left_behind_text(const std::vector<std::string>& command, std::optional<int> left,
                             bool succeeded);

}  // namespace gpurota::cli
