#include "daemon/attribution.h"

namespace gpurota::daemon {
namespace {

// Deeper than any real tree of processes; ends a walk that a racing /proc makes circular.
constexpr int kDeepestTree = 256;

}  // namespace

const Attribution::Owner& Attribution::owner_of(pid_t pid) {
  const auto info = processes_.read_info(pid);
  const auto known = known_.find(pid);
  if (!info) {
    // Dead or hidden: what was known of it still holds, as its pid is still listed.
    return known != known_.end() ? known->second.owner : (known_[pid] = {}).owner;
  }
  if (known != known_.end() && known->second.start_ticks == info->start_ticks &&
      (known->second.owner.lease || info->zombie)) {
    return known->second.owner;
  }
  return (known_[pid] = {info->start_ticks, find_owner(*info)}).owner;
}

Attribution::Owner Attribution::find_owner(const ports::ProcessInfo& process) {
  Owner owner{process.uid, std::nullopt};
  owner.lease = roots_.lease_of_cgroup(processes_.cgroup_of(process.pid));
  ports::ProcessInfo at = process;
  for (int depth = 0; !owner.lease && depth < kDeepestTree; ++depth) {
    owner.lease = roots_.lease_of_process(at.pid);
    if (at.parent <= 1) break;
    const auto parent = processes_.read_info(at.parent);
    // A parent that is younger than its child is another process with the old one's pid.
    if (!parent || parent->start_ticks > at.start_ticks) break;
    at = *parent;
  }
  return owner;
}

void Attribution::keep_only(const std::set<pid_t>& listed) {
  std::erase_if(known_, [&](const auto& entry) { return !listed.contains(entry.first); });
}

}  // namespace gpurota::daemon
