#include "daemon/history/lease_loads.h"

#include <set>

namespace gpurota::daemon {

std::optional<std::map<LeaseId, int>> lease_loads(const GpuEntry& gpu,
                                                  const std::map<LeaseId, LeaseEntry>& leases,
                                                  const std::map<pid_t, LeaseId>& owners) {
  if (!gpu.sample.error.empty() || !gpu.sample.load_percent) return std::nullopt;
  std::map<LeaseId, int> loads;
  for (const auto& [id, entry] : leases) {
    if (entry.lease.find_gpu(gpu.info.uuid)) loads[id] = 0;
  }
  const int load = *gpu.sample.load_percent;
  std::set<LeaseId> present;
  std::size_t strangers = 0;
  for (const GpuProcess& process : gpu.sample.processes) {
    const auto owner = owners.find(process.pid);
    if (owner == owners.end()) {
      ++strangers;
    } else {
      present.insert(owner->second);
    }
  }
  if (load == 0 || present.empty()) return loads;
  if (present.size() == 1 && strangers == 0) {
    if (const auto only = loads.find(*present.begin()); only != loads.end()) only->second = load;
    return loads;
  }
  if (!gpu.figures.processes) return std::nullopt;
  int total = 0;
  std::map<LeaseId, int> parts;
  for (const GpuFigures::ProcessLoad& process : *gpu.figures.processes) {
    total += process.sm_percent;
    const auto owner = owners.find(process.pid);
    if (owner != owners.end()) parts[owner->second] += process.sm_percent;
  }
  if (total == 0) return std::nullopt;
  for (const auto& [lease, part] : parts) {
    if (const auto at = loads.find(lease); at != loads.end()) at->second = load * part / total;
  }
  return loads;
}

}  // namespace gpurota::daemon
