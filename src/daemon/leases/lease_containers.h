// Which containers are in a lease: those that a process of it has said so from, with the lease's
// token, and as far as they are that process's user's. A container may have programs of many users
// (JupyterHub), who are not to be ended by each other's leases. State thread only.
#pragma once

#include "daemon/leases/lease_entry.h"
#include "ports/processes.h"
#include "watch/container.h"

#include <optional>
#include <string>

namespace gpurota::daemon {

// So many of a lease are remembered; processes of others are in it one by one.
inline constexpr std::size_t kMostContainers = 64;

// The container of root's engine that a process is in: the innermost one whose control group nobody
// but root can have made.
std::optional<watch::Container> find_roots_container(ports::Processes& processes, pid_t pid);

// The container that this process of the lease is in, and whose it is there, if the lease does not
// know them yet: only what that user could end in the container anyway becomes the lease's. None:
// there is none, the command of the lease is in it too (all of it is then in one container, and not
// all of that is in the lease), or another container may have that group one day.
std::optional<ports::StoredContainer> find_new_container(ports::Processes& processes,
                                                         const LeaseEntry& entry,
                                                         const ports::ProcessId& process);

}  // namespace gpurota::daemon
