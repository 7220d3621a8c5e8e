// How what has not ended with its lease is killed. podman has no daemon: its command, and the
// monitor (conmon) that cleans up when the container has ended, are among the lease's processes.
// Killed together with the container they would leave one that is "Up" for ever. State thread only.
#pragma once

#include "daemon/leases/lease_entry.h"
#include "daemon/leases/lease_processes.h"
#include "daemon/leases/tracked_process.h"

#include <chrono>

namespace gpurota::daemon {

// After all but the engine: its command, at whose end `gpurota run` has the engine kill what else
// runs in the container.
inline constexpr Duration kEngineSees = std::chrono::seconds(1);
// After that, everything.
inline constexpr Duration kEngineTakes = std::chrono::seconds(4);

// Call once. Counts as left running the processes that live when the command has ended, which the
// lease's user is told.
void ask_to_end(LeaseEntry& entry);
// `late`: for how long they should have been dead. `main` is the first process of the command;
// null: there is none. Call again until all have ended.
void kill_leftovers(LeaseProcesses& members, const TrackedProcess* main, Duration late);

// Sends the signal of the lease's warning to those of its processes that handle it, and says how
// many these are.
int warn_programs(LeaseEntry& entry, int signal);

}  // namespace gpurota::daemon
