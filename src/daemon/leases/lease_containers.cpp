#include "daemon/leases/lease_containers.h"

#include "watch/container.h"

#include <algorithm>

namespace gpurota::daemon {

std::optional<std::string> find_new_container(ports::Processes& processes, const LeaseEntry& entry,
                                              const ports::ProcessId& process) {
  if (entry.automatic || entry.containers.size() >= kMostContainers) return std::nullopt;
  const auto container = watch::find_container(processes.cgroups().of(process.pid));
  if (!container || !container->is_unique()) return std::nullopt;
  const auto& known = entry.containers;
  if (std::find(known.begin(), known.end(), container->group) != known.end()) return std::nullopt;
  const auto is_inside = [&](pid_t pid) {
    return ports::is_in_cgroup(processes.cgroups().of(pid), container->group);
  };
  if (entry.holder && is_inside(entry.holder->pid())) return std::nullopt;
  if (entry.main && is_inside(entry.main->pid())) return std::nullopt;
  for (const auto& [pid, command] : entry.commands) {
    if (is_inside(pid)) return std::nullopt;
  }
  // The group was read by a number, which must still have been the process's.
  if (!ports::is_still(processes, process)) return std::nullopt;
  return container->group;
}

}  // namespace gpurota::daemon
