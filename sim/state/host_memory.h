// How much memory the host can still provide, so that running short is a CUDA error and not a
// SIGBUS or the OOM killer. Reads /proc/meminfo and the cgroups' limits (v2 and v1); any thread.
#pragma once

#include <cstdint>

namespace gpurota::sim {

// The minimum of MemAvailable and of what each cgroup above this process has left.
std::uint64_t host_bytes_available();

// The total memory of the host (MemTotal).
std::uint64_t host_bytes();

}  // namespace gpurota::sim
