#include "daemon/leases/lease_containers.h"

#include <algorithm>

namespace gpurota::daemon {

std::optional<watch::Container> find_roots_container(ports::Processes& processes, pid_t pid) {
  ports::ControlGroups& groups = processes.cgroups();
  return watch::find_container(groups.of(pid), [&groups](const std::string& group) {
    return groups.is_made_by_root(group);
  });
}

std::optional<ports::StoredContainer> find_new_container(ports::Processes& processes,
                                                         const LeaseEntry& entry,
                                                         const ports::ProcessId& process) {
  if (entry.automatic || entry.containers.size() >= kMostContainers) return std::nullopt;
  const auto container = watch::find_container(processes.cgroups().of(process.pid));
  if (!container || !container->is_unique()) return std::nullopt;
  // The control group was read by pid. The group is that of `process` only if `process` still has
  // the pid.
  const auto info = processes.read_info(process.pid);
  if (!info || info->id() != process) return std::nullopt;
  ports::StoredContainer found{info->uid, container->group};
  const auto& known = entry.containers;
  if (std::find(known.begin(), known.end(), found) != known.end()) return std::nullopt;
  const auto is_inside = [&](pid_t pid) {
    return ports::is_in_cgroup(processes.cgroups().of(pid), container->group);
  };
  if (entry.holder && is_inside(entry.holder->pid())) return std::nullopt;
  if (entry.main && is_inside(entry.main->pid())) return std::nullopt;
  for (const auto& [pid, command] : entry.commands) {
    if (is_inside(pid)) return std::nullopt;
  }
  return found;
}

}  // namespace gpurota::daemon
