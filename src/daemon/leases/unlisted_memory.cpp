#include "daemon/leases/unlisted_memory.h"

#include <algorithm>

namespace gpurota::daemon {
namespace {

// What a driver keeps for itself, and how long more than that is taken for memory on its way back.
constexpr Bytes kUnlistedNoise = gib(1);
constexpr Duration kUnlistedPatience = std::chrono::seconds(2);

}  // namespace

bool has_returned(const GpuTable& gpus, const Lease& lease, TimePoint empty_since, TimePoint now) {
  return std::all_of(lease.gpus.begin(), lease.gpus.end(), [&](const LeaseGpu& share) {
    const GpuEntry* const gpu = gpus.find(share.uuid);
    if (!gpu || !gpu->sample.error.empty()) return true;
    if (gpu->taken < empty_since) return false;
    Bytes listed;
    for (const GpuProcess& process : gpu->sample.processes) {
      if (!process.used) return true;
      listed += *process.used;
    }
    return gpu->sample.used - listed <= kUnlistedNoise || now - empty_since >= kUnlistedPatience;
  });
}

}  // namespace gpurota::daemon
