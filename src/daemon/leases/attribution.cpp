#include "daemon/leases/attribution.h"

#include "daemon/leases/lease_members.h"

#include <utility>
#include <vector>

namespace gpurota::daemon {
namespace {

// Deeper than any real tree of processes; ends a walk that a racing /proc makes circular.
constexpr std::size_t kDeepestTree = 256;

}  // namespace

const Attribution::Owner& Attribution::owner_of(pid_t pid) {
  if (const auto changes = tables_.membership_changes; changes != seen_changes_) {
    seen_changes_ = changes;
    walked_.clear();
  }
  const auto info = processes_.read_info(pid);
  const auto known = known_.find(pid);
  if (!info || info->zombie) {
    // The process is dead or hidden. The known owner is still right, because the driver still lists
    // the pid. Nothing is stored about a process that was never seen, because a program may ask
    // about any number.
    Owner& owner = known != known_.end() ? known->second
                   : info                ? (known_[pid] = find_owner(*info))
                                         : (unseen_ = Owner());
    owner.gone = info.has_value() || info.error().code == Code::kGone;
    return owner;
  }
  const bool same = known != known_.end() && known->second.start_ticks == info->start_ticks;
  const Walked* const walked = find_walked(info->id());
  if (same && (known->second.lease || (walked && !walked->lease))) return known->second;
  Owner owner = find_owner(*info);
  if (owner.lease && !ports::is_still(processes_, info->id())) {  // the pid may be reused
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
  owner.lease = lease_of_cgroup(tables_, cgroup);
  owner.container = watch::find_container(cgroup);
  if (!owner.lease) owner.lease = walk(process);
  if (!owner.lease && owner.container) {
    owner.lease = lease_of_container(tables_, owner.container->group, process.uid);
  }
  if (!owner.lease) owner.executable = processes_.executable_of(process.pid);
  return owner;
}

std::optional<LeaseId> Attribution::walk(const ports::ProcessInfo& process) {
  Path path;
  const auto ahead = ahead_.find(process.pid);
  if (ahead != ahead_.end() && ahead->second.ids.front() == process.id()) {
    path = std::move(ahead->second);
    ahead_.erase(ahead);
  } else {
    lengthen(path, process);
  }
  while (path.next != 0) {
    const auto parent = processes_.read_info(path.next);
    if (!parent) break;
    lengthen(path, *parent);
  }
  return settle(path);
}

void Attribution::lengthen(Path& path, const ports::ProcessInfo& info) {
  path.next = 0;
  // A parent that is younger than its child is a new process that got the pid of the real parent.
  if (!path.ids.empty() && info.start_ticks > path.ids.back().start_ticks) return;
  path.ids.push_back(info.id());
  if (find_walked(info.id()) || lease_of_process(tables_, info.id())) return;
  if (info.parent > 1 && path.ids.size() < kDeepestTree) path.next = info.parent;
}

std::optional<LeaseId> Attribution::settle(const Path& path) {
  std::optional<LeaseId> lease;
  auto at = path.ids.begin();
  for (; at != path.ids.end() && !lease; ++at) {
    if (const Walked* const known = find_walked(*at)) {
      lease = known->lease;
      break;
    }
    lease = lease_of_process(tables_, *at);
  }
  // The result holds for the processes before `at`, but perhaps not for their further ancestors.
  for (auto each = path.ids.begin(); each != at; ++each) {
    walked_[each->pid] = {each->start_ticks, lease};
  }
  return lease;
}

bool Attribution::walk_ahead(pid_t pid, std::size_t& reads_left) {
  if (reads_left == 0) return false;
  --reads_left;
  const auto info = processes_.read_info(pid);
  if (!info || info->zombie || find_walked(info->id())) return true;
  const auto known = known_.find(pid);
  const bool same = known != known_.end() && known->second.start_ticks == info->start_ticks;
  if (same && known->second.lease) return true;
  Path& path = ahead_[pid];
  if (path.ids.empty() || path.ids.front() != info->id()) {
    path = {};
    lengthen(path, *info);
  }
  while (path.next != 0) {
    if (reads_left == 0) return false;
    --reads_left;
    const auto parent = processes_.read_info(path.next);
    if (!parent) {
      path.next = 0;
    } else {
      lengthen(path, *parent);
    }
  }
  return true;
}

const Attribution::Walked* Attribution::find_walked(const ports::ProcessId& process) const {
  const auto known = walked_.find(process.pid);
  if (known == walked_.end() || known->second.start_ticks != process.start_ticks) return nullptr;
  return &known->second;
}

void Attribution::keep_only(const std::set<pid_t>& listed) {
  walked_.clear();
  ahead_.clear();
  std::erase_if(known_, [&](const auto& entry) { return !listed.contains(entry.first); });
}

}  // namespace gpurota::daemon
