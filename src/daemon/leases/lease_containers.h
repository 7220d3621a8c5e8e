// Finds the containers of a lease. A container is in a lease when a process there has presented the
// lease's token. The lease then has only those processes of the container that the user of this
// process could end anyway: a container may have programs of many users (JupyterHub), which must
// not end with each other's leases. State thread only.
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

// The innermost container of the process whose control group only root can have made: a container
// of an engine that runs as root.
std::optional<watch::Container> find_roots_container(ports::Processes& processes, pid_t pid);

// The container of this process of the lease, and the process's user there, if the lease does not
// know them yet. Only processes that this user could end anyway become the lease's. Nothing: the
// process is in no container; or the lease's command is in the same container, where programs may
// run that are not in the lease; or a later container may have the same control group.
std::optional<ports::StoredContainer> find_new_container(ports::Processes& processes,
                                                         const LeaseEntry& entry,
                                                         const ports::ProcessId& process);

}  // namespace gpurota::daemon
