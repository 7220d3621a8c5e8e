// How much memory the host can still give, so that running short is a CUDA error and not a SIGBUS
// or the OOM killer. Reads /proc/meminfo and the cgroup's limits (v2 and v1); any thread.
#pragma once

#include <cstdint>

namespace gpurota::sim {

// The least of MemAvailable and what each cgroup above this process has left.
std::uint64_t host_bytes_available();

// All that the machine has (MemTotal).
std::uint64_t host_bytes();

}  // namespace gpurota::sim
