// Identifies a process, even after its pid is reused.
#pragma once

#include <cstdint>

#include <sys/types.h>

namespace gpurota::ports {

// One process of this boot, and no later one with the same pid. Decisions are made about a
// ProcessId, and a ProcessId is stored. A bare pid_t is used only for what the kernel or the driver
// lists at this moment, for what a tenant reports, and for people.
struct ProcessId {
  pid_t pid = 0;                  // 0: none that is visible to us
  std::uint64_t start_ticks = 0;  // since boot, as /proc reports; 0: not known
  bool operator==(const ProcessId&) const = default;
};

}  // namespace gpurota::ports
