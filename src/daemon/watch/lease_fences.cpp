#include "daemon/watch/lease_fences.h"

#include "base/log.h"

#include <algorithm>
#include <set>
#include <utility>

namespace gpurota::daemon {
namespace {

// The control groups of a lease: its command's, or those of the commands in a reservation.
std::set<std::string> cgroups_of(const LeaseEntry& entry) {
  std::set<std::string> cgroups;
  if (auto own = entry.members.own_cgroup()) cgroups.insert(std::move(*own));
  for (const auto& [pid, command] : entry.commands) {
    if (auto own = command.members.own_cgroup()) cgroups.insert(std::move(*own));
  }
  return cgroups;
}

}  // namespace

void LeaseFences::apply(const FencesOf& fences_of) {
  std::set<std::string> living;
  for (const auto& [id, entry] : tables_.leases) {
    const auto cgroups = cgroups_of(entry);
    if (cgroups.empty()) continue;
    const DeviceFences fences = fences_of(entry.lease);
    for (const std::string& cgroup : cgroups) {
      living.insert(cgroup);
      const auto before = set_.find(cgroup);
      if (before == set_.end() || before->second.fences != fences) set(cgroup, fences);
    }
  }
  std::erase_if(set_, [&](const auto& entry) { return !living.contains(entry.first); });
}

void LeaseFences::set(const std::string& cgroup, const DeviceFences& fences) {
  Fenced& fenced = set_[cgroup];
  fenced = {fences, {}};
  const auto done = processes_.cgroups().fence(cgroup, fences);
  if (done) {
    log::debug("devices fenced", {{"cgroup", cgroup}, {"fences", fences.size()}});
    told_.clear();
    return;
  }
  // kGone: the last process of the control group has ended.
  if (done.error().code == Code::kGone) return;
  fenced.trouble = done.error().message;
  if (told_ != fenced.trouble) {
    log::warn(fenced.trouble + ", its processes can open all that their user can");
  }
  told_ = fenced.trouble;
}

std::string LeaseFences::trouble() const {
  const auto open = std::find_if(set_.begin(), set_.end(),
                                 [](const auto& entry) { return !entry.second.trouble.empty(); });
  return open == set_.end() ? std::string() : open->second.trouble;
}

void LeaseFences::lift() {
  for (const auto& [id, entry] : tables_.leases) {
    for (const std::string& cgroup : cgroups_of(entry)) {
      if (const auto done = processes_.cgroups().fence(cgroup, {}); !done) {
        log::warn(done.error().message + ", ignoring", {{"lease", to_string(id)}});
      }
    }
  }
  set_.clear();
  told_.clear();
}

}  // namespace gpurota::daemon
