// Finds the containers of a lease. A container is in a lease when a process there has said so with
// the lease's token, and only as far as that process's user goes: a container may have programs of
// many users (JupyterHub), which must not end with each other's leases. State thread only.
#pragma once

#include "daemon/leases/lease_entry.h"
#include "ports/processes.h"
#include "watch/container.h"

#include <optional>
#include <string>

namespace gpurota::daemon {

// The most containers that are remembered of a lease; processes in further containers come to the
// lease one by one.
inline constexpr std::size_t kMostContainers = 64;

// The container of root's engine that a process is in: the innermost one whose control group nobody
// but root can have made.
std::optional<watch::Container> find_roots_container(ports::Processes& processes, pid_t pid);

// The container of this process of the lease, and the process's user there, if the lease does not
// know them yet: only processes that this user could end anyway become the lease's. Nothing: the
// process is in no container; or the lease's command is in the same one, where other programs may
// run that are not in the lease; or another container may have that group one day.
std::optional<ports::StoredContainer> find_new_container(ports::Processes& processes,
                                                         const LeaseEntry& entry,
                                                         const ports::ProcessId& process);

}  // namespace gpurota::daemon
