#include "daemon/watch/lease_groups.h"

#include <algorithm>
#include <utility>

namespace gpurota::daemon {
namespace {

// Adds the group, unless it is in a group of the list, and removes those of the list that are in
// it.
void add_outermost(std::vector<std::string>& groups, const std::string& group) {
  const auto holds = [&group](const std::string& each) { return ports::is_in_cgroup(group, each); };
  if (group.empty() || std::any_of(groups.begin(), groups.end(), holds)) return;
  std::erase_if(groups,
                [&group](const std::string& each) { return ports::is_in_cgroup(each, group); });
  groups.push_back(group);
}

bool has_group(const std::vector<std::string>& groups, const std::string& group) {
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

}  // namespace

LeaseGroups groups_of(const LeaseEntry& entry, const std::string& pod) {
  LeaseGroups groups;
  groups.pod = pod;
  add_outermost(groups.commands, entry.members.cgroup());
  for (const auto& [pid, command] : entry.commands) {
    add_outermost(groups.commands, command.members.cgroup());
  }
  for (const ports::StoredContainer& container : entry.containers) {
    const auto holds = [&container](const std::string& command) {
      return ports::is_in_cgroup(container.group, command);
    };
    if (holds(pod) || std::any_of(groups.commands.begin(), groups.commands.end(), holds)) continue;
    add_outermost(groups.containers, container.group);
  }
  return groups;
}

bool LeaseGroups::has_any(const std::function<bool(const std::string& group)>& test) const {
  return std::any_of(commands.begin(), commands.end(), test) ||
         std::any_of(containers.begin(), containers.end(), test) || (!pod.empty() && test(pod));
}

std::string GroupChooser::pod_group(const LeaseEntry& entry) const {
  return pods_.find(entry.pod_uid, entry.kubelet_container);
}

void GroupChooser::read_groups() {
  groups_.clear();
  for (const auto& [id, entry] : tables_.leases) read(entry);
}

const LeaseGroups& GroupChooser::read(const LeaseEntry& entry) {
  return groups_[entry.lease.id] = groups_of(entry, pod_group(entry));
}

LimitedGroup GroupChooser::choose(const LeaseEntry& entry, const std::string& last) {
  return choose_among(entry, read(entry), last);
}

LimitedGroup GroupChooser::choose_as_read(const LeaseEntry& entry, const std::string& last) {
  return choose_among(entry, groups_[entry.lease.id], last);
}

LimitedGroup GroupChooser::choose_among(const LeaseEntry& entry, LeaseGroups groups,
                                        const std::string& last) {
  // A lease remembers containers that have ended.
  std::erase_if(groups.containers, [this](const std::string& container) {
    const auto members = processes_.cgroups().members(container);
    return members && members->empty();
  });
  LimitedGroup chosen{.group = {}, .groups = groups.count()};
  if (!groups.pod.empty()) {
    chosen.group = groups.pod;
    chosen.kind = GroupKind::kPod;
  } else if (groups.containers.size() == 1 && is_own(entry, groups.containers.front())) {
    chosen.group = groups.containers.front();
    chosen.kind = GroupKind::kContainer;
  } else if (!groups.commands.empty()) {
    chosen.group = has_group(groups.commands, last) ? last : groups.commands.front();
  } else if (!groups.containers.empty()) {
    std::vector<std::string> own = groups.containers;
    std::erase_if(own, [&](const std::string& container) { return !is_own(entry, container); });
    chosen.kind = GroupKind::kContainer;
    chosen.shared = own.empty();
    if (!own.empty()) chosen.group = has_group(own, last) ? last : own.front();
  }
  return chosen;
}

bool GroupChooser::is_own(const LeaseEntry& entry, const std::string& container) {
  const auto overlaps = [&container](const std::string& group) {
    return ports::is_in_cgroup(group, container) || ports::is_in_cgroup(container, group);
  };
  for (const auto& [id, groups] : groups_) {
    if (id != entry.lease.id && groups.has_any(overlaps)) return false;
  }
  const auto known =
      std::find_if(entry.containers.begin(), entry.containers.end(),
                   [&](const ports::StoredContainer& each) { return each.group == container; });
  const auto another = [&](const ports::StoredContainer& each) {
    return each.group == container && each.uid != known->uid;
  };
  if (known == entry.containers.end() ||
      std::any_of(entry.containers.begin(), entry.containers.end(), another)) {
    return false;
  }
  const TimePoint now = loop_.now();
  std::erase_if(checked_, [now](const auto& each) { return each.second.at + kFresh <= now; });
  const auto [place, fresh] = checked_.try_emplace(container);
  if (fresh) place->second = {has_one_user(known->uid, container), now};
  return place->second.is_own;
}

bool GroupChooser::has_one_user(uid_t uid, const std::string& container) {
  const auto members = processes_.cgroups().members(container);
  if (!members || members->size() > kMostProcesses) return false;
  return std::all_of(members->begin(), members->end(), [&](pid_t pid) {
    const auto info = processes_.read_info(pid);
    return info ? info->uid == uid : info.error().code == Code::kGone;
  });
}

}  // namespace gpurota::daemon
