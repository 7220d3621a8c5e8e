#include "daemon/leases/lease_members.h"

#include "base/same_secret.h"

#include <algorithm>

namespace gpurota::daemon {

std::optional<LeaseId> LeaseMembers::lease_of_cgroup(const std::string& cgroup) const {
  for (const auto& [id, entry] : leases_.entries()) {
    if (ports::is_in_cgroup(cgroup, entry.members.cgroup())) return id;
    for (const auto& [pid, command] : entry.commands) {
      if (ports::is_in_cgroup(cgroup, command.members.cgroup())) return id;
    }
  }
  return std::nullopt;
}

std::optional<LeaseId> LeaseMembers::lease_of_process(const ports::ProcessId& process) const {
  for (const auto& [id, entry] : leases_.entries()) {
    if (entry.members.contains(process)) return id;
    for (const auto& [main, command] : entry.commands) {
      if (command.members.contains(process)) return id;
    }
  }
  return std::nullopt;
}

std::optional<LeaseId> LeaseMembers::lease_of_container(const std::string& group, uid_t uid) const {
  const ports::StoredContainer asked{uid, group};
  for (const auto& [id, entry] : leases_.entries()) {
    const auto& known = entry.containers;
    if (std::find(known.begin(), known.end(), asked) != known.end()) return id;
  }
  return std::nullopt;
}

bool has_token(const LeaseEntry& entry, std::string_view token) {
  return is_same_secret(entry.token, token);
}

const LeaseEntry* find_pod_lease(const LeaseManager& leases, std::string_view token) {
  const LeaseEntry* found = nullptr;
  for (const auto& [id, entry] : leases.entries()) {
    if (entry.lease.kind != LeaseKind::kPod || entry.cause) continue;
    if (has_token(entry, token)) found = &entry;
  }
  return found;
}

const LeaseEntry* find_told_lease(const LeaseManager& leases, LeaseId id, std::string_view token) {
  return id.value == 0 ? find_pod_lease(leases, token) : leases.find(id);
}

std::optional<LeaseId> find_reservation(const LeaseManager& leases, uid_t uid, const GpuUuid& gpu) {
  for (const auto& [id, entry] : leases.entries()) {
    const bool given_back = entry.cause && entry.cause != EndCause::kExpired;
    if (entry.lease.kind == LeaseKind::kReservation && entry.lease.uid == uid && !given_back &&
        entry.lease.find_gpu(gpu)) {
      return id;
    }
  }
  return std::nullopt;
}

}  // namespace gpurota::daemon
