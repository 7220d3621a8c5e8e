// How much host memory a control group leaves to its processes. State thread or any other; reads
// files of the kernel, which never block.
#pragma once

#include "base/bytes.h"

#include <optional>
#include <string>

namespace gpurota::sys {

// The least that is left below `directory`'s own limit and the limits of the groups above it, as
// version 2 has them (memory.max, memory.current). Empty: there is no limit, or none can be read.
std::optional<Bytes> read_group_room(const std::string& directory);

}  // namespace gpurota::sys
