// Finds the lease of a process, by the processes, control groups and containers of the leases.
// State thread only.
#pragma once

#include "daemon/leases/lease_tables.h"

#include <optional>
#include <string>
#include <string_view>

namespace gpurota::daemon {

std::optional<LeaseId> lease_of_cgroup(const LeaseTables& tables, const std::string& cgroup);
// The lease that has this process as a command's first process or as a descendant of one.
std::optional<LeaseId> lease_of_process(const LeaseTables& tables, const ports::ProcessId& process);
// The lease that has a process of this user in this container: all processes of the user there
// belong to that lease.
std::optional<LeaseId> lease_of_container(const LeaseTables& tables, const std::string& group,
                                          uid_t uid);

// Takes the same time wherever the tokens differ, so that a caller cannot find a token by timing.
bool has_token(const LeaseEntry& entry, std::string_view token);

// The living lease of a pod with this token; null: there is none.
const LeaseEntry* find_pod_lease(const LeaseTables& tables, std::string_view token);
// The lease that a program says it is in. `id` 0 means the pod's lease with this token, because a
// pod's environment is made before its lease has a number. The caller checks whether the program
// may be in the lease.
const LeaseEntry* find_told_lease(const LeaseTables& tables, LeaseId id, std::string_view token);

// The reservation that a process of this user on this GPU is in, if it is in no other lease.
std::optional<LeaseId> find_reservation(const LeaseTables& tables, uid_t uid, const GpuUuid& gpu);

}  // namespace gpurota::daemon
