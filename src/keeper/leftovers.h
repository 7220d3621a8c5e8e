// Directories of runs that nobody knows any more: the daemon was killed between forgetting a job and removing what
// it had, the values of its variables among it. For a daemon that starts, on its state thread.
#pragma once

#include "keeper/launcher.h"

#include <cstdint>
#include <functional>
#include <string>

namespace gpurota::keeper {

// Removes those in `directory`, the launcher's, that are not `known` and have no keeper. What is no directory of
// a run stays.
void remove_leftovers(const std::string& directory, Launcher& launcher,
                      const std::function<bool(std::uint64_t)>& known);

}  // namespace gpurota::keeper
