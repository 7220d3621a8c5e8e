// Finds the containers of a lease. A container is in a lease when a process there has presented the
// lease's token. Then the processes of the container that this process's user could end anyway
// belong to the lease, and no others: a container may have programs of many users (JupyterHub),
// which must not end with each other's leases. State thread only.
#pragma once

#include "daemon/leases/lease_entry.h"
#include "ports/processes.h"
#include "watch/container.h"

#include <optional>
#include <string>

namespace gpurota::daemon {

// The most containers that are stored for a lease. Processes in further containers are added to the
// lease one by one.
inline constexpr std::size_t kMostContainers = 64;

// Finds the innermost of the process's containers that an engine of root runs: only root can have
// made the container's control group.
std::optional<watch::Container> find_roots_container(ports::Processes& processes, pid_t pid);

// The container of this process of the lease, and the process's user there, if the lease does not
// know them yet. Only processes that this user could end anyway become the lease's. Nothing: the
// process is in no container; or the lease's command is in the same container, where programs may
// run that are not in the lease; or a later container may have the same control group.
std::optional<ports::StoredContainer> find_new_container(ports::Processes& processes,
                                                         const LeaseEntry& entry,
                                                         const ports::ProcessId& process);

}  // namespace gpurota::daemon
