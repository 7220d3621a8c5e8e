#include "daemon/leases/lease_members.h"

#include "base/same_secret.h"

#include <algorithm>

namespace gpurota::daemon {

// The innermost of nested groups decides: a command in the shell of a lease may have a lease of its
// own.
std::optional<LeaseId> lease_of_cgroup(const LeaseTables& tables, const std::string& cgroup) {
  std::optional<LeaseId> found;
  std::size_t longest = 0;
  const auto consider = [&](LeaseId id, const std::string& group) {
    if (group.size() <= longest || !ports::is_in_cgroup(cgroup, group)) return;
    longest = group.size();
    found = id;
  };
  for (const auto& [id, entry] : tables.leases) {
    consider(id, entry.members.cgroup());
    for (const auto& [pid, command] : entry.commands) consider(id, command.members.cgroup());
  }
  return found;
}

// Without groups the members of an inner lease are also members of the outer lease, as descendants.
// So the lease whose root is a member of the other lease is the inner lease.
std::optional<LeaseId> lease_of_process(const LeaseTables& tables,
                                        const ports::ProcessId& process) {
  struct Found {
    LeaseId lease;
    const LeaseProcesses* members;
  };
  std::optional<Found> innermost;
  const auto consider = [&](LeaseId id, const LeaseProcesses& members, const TrackedProcess* root) {
    if (!members.contains(process)) return;
    const bool inside = !innermost || (root && innermost->members->contains(root->id));
    if (inside) innermost = Found{id, &members};
  };
  for (const auto& [id, entry] : tables.leases) {
    consider(id, entry.members, entry.main ? &*entry.main : nullptr);
    for (const auto& [main, command] : entry.commands) {
      consider(id, command.members, &command.main);
    }
  }
  return innermost ? std::optional(innermost->lease) : std::nullopt;
}

std::optional<LeaseId> lease_of_container(const LeaseTables& tables, const std::string& group,
                                          uid_t uid) {
  const ports::StoredContainer asked{uid, group};
  for (const auto& [id, entry] : tables.leases) {
    const auto& known = entry.containers;
    if (std::find(known.begin(), known.end(), asked) != known.end()) return id;
  }
  return std::nullopt;
}

bool has_token(const LeaseEntry& entry, std::string_view token) {
  return is_same_secret(entry.token, token);
}

const LeaseEntry* find_pod_lease(const LeaseTables& tables, std::string_view token) {
  const LeaseEntry* found = nullptr;
  for (const auto& [id, entry] : tables.leases) {
    if (entry.lease.kind != LeaseKind::kPod || entry.cause) continue;
    if (has_token(entry, token)) found = &entry;
  }
  return found;
}

const LeaseEntry* find_told_lease(const LeaseTables& tables, LeaseId id, std::string_view token) {
  return id.value == 0 ? find_pod_lease(tables, token) : tables.find(id);
}

std::optional<LeaseId> find_reservation(const LeaseTables& tables, uid_t uid, const GpuUuid& gpu) {
  for (const auto& [id, entry] : tables.leases) {
    const bool given_back = entry.cause && entry.cause != EndCause::kExpired;
    if (entry.lease.kind == LeaseKind::kReservation && entry.lease.uid == uid && !given_back &&
        entry.lease.find_gpu(gpu)) {
      return id;
    }
  }
  return std::nullopt;
}

}  // namespace gpurota::daemon
