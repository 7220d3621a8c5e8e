// Which containers are in a lease: those that a process of it has said so from, with the lease's token. State thread only.
#pragma once

#include "daemon/leases/lease_entry.h"
#include "ports/processes.h"

#include <optional>
#include <string>

namespace gpurota::daemon {

// So many of a lease are remembered; processes of others are in it one by one.
inline constexpr std::size_t kMostContainers = 64;

// The control group of the container that this process of the lease is in, if the lease does not know it yet. None: there is none, the
// command of the lease is in it too (all of it is then in one container, and not all of that is in the lease), or
// another container may have that group one day.
std::optional<std::string> find_new_container(ports::Processes& processes, const LeaseEntry& entry,
                                              const ports::ProcessId& process);

}  // namespace gpurota::daemon
