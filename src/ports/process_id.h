// Which process: by what outlives the reuse of its number.
#pragma once

#include <cstdint>

#include <sys/types.h>

namespace gpurota::ports {

// One process of this boot, and no later one that has its number: what decisions are made about,
// and what is stored. A bare pid_t is what the kernel or the driver lists at this moment, what a
// tenant says, or for people.
struct ProcessId {
  pid_t pid = 0;                  // 0: none that can be seen from here
  std::uint64_t start_ticks = 0;  // since boot, as /proc tells; 0: not known
  bool operator==(const ProcessId&) const = default;
};

}  // namespace gpurota::ports
