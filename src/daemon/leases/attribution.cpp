#include "daemon/leases/attribution.h"

#include <utility>
#include <vector>

namespace gpurota::daemon {
namespace {

// Deeper than any real tree of processes; ends a walk that a racing /proc makes circular.
constexpr std::size_t kDeepestTree = 256;

}  // namespace

const Attribution::Owner& Attribution::owner_of(pid_t pid) {
  if (const auto changes = roots_.membership_changes(); changes != seen_changes_) {
    seen_changes_ = changes;
    walked_.clear();
  }
  const auto info = processes_.read_info(pid);
  const auto known = known_.find(pid);
  if (!info || info->zombie) {
    // Dead or hidden: what was known of it still holds, as its pid is still listed. Of what was never seen nothing is kept: a program
    // may ask about any number.
    Owner& owner = known != known_.end() ? known->second
                   : info                ? (known_[pid] = find_owner(*info))
                                         : (unseen_ = Owner());
    owner.gone = info.has_value() || info.error().code == Code::kGone;
    return owner;
  }
  const bool same = known != known_.end() && known->second.start_ticks == info->start_ticks;
  const Walked* const walked = find_walked(*info);
  if (same && (known->second.lease || (walked && !walked->lease))) return known->second;
  Owner owner = find_owner(*info);
  if (owner.lease && !ports::is_still(processes_, info->id())) {  // it may be another's
    owner.lease.reset();
    owner.gone = true;
  }
  return known_[pid] = std::move(owner);
}

Attribution::Owner Attribution::find_owner(const ports::ProcessInfo& process) {
  Owner owner;
  owner.uid = process.uid;
  owner.start_ticks = process.start_ticks;
  const std::string cgroup = processes_.cgroups().of(process.pid);
  owner.lease = roots_.lease_of_cgroup(cgroup);
  owner.container = watch::find_container(cgroup);
  if (!owner.lease) owner.lease = walk(process);
  if (!owner.lease && owner.container) {
    owner.lease = roots_.lease_of_container(owner.container->group, process.uid);
  }
  if (!owner.lease) owner.executable = processes_.executable_of(process.pid);
  return owner;
}

std::optional<LeaseId> Attribution::walk(const ports::ProcessInfo& process) {
  std::vector<ports::ProcessId> path;
  std::optional<LeaseId> lease;
  ports::ProcessInfo at = process;
  while (path.size() < kDeepestTree) {
    if (const Walked* const known = find_walked(at)) {
      lease = known->lease;
      break;
    }
    lease = roots_.lease_of_process(at.id());
    if (lease) break;
    path.push_back(at.id());
    if (at.parent <= 1) break;
    const auto parent = processes_.read_info(at.parent);
    // A parent that is younger than its child is another process with the old one's pid.
    if (!parent || parent->start_ticks > at.start_ticks) break;
    at = *parent;
  }
  for (const ports::ProcessId& each : path) walked_[each.pid] = {each.start_ticks, lease};
  return lease;
}

const Attribution::Walked* Attribution::find_walked(const ports::ProcessInfo& process) const {
  const auto known = walked_.find(process.pid);
  if (known == walked_.end() || known->second.start_ticks != process.start_ticks) return nullptr;
  return &known->second;
}

void Attribution::keep_only(const std::set<pid_t>& listed) {
  walked_.clear();
  std::erase_if(known_, [&](const auto& entry) { return !listed.contains(entry.first); });
}

}  // namespace gpurota::daemon
