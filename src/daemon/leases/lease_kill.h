// Kills processes that have not ended with their lease. podman has no daemon: its command, and the
// monitor (conmon) that cleans up when the container has ended, are among the lease's processes. If
// these two were killed together with the container, it would be shown as "Up" for ever. State
// thread only.
#pragma once

#include "daemon/leases/lease_entry.h"
#include "daemon/leases/lease_processes.h"
#include "daemon/leases/tracked_process.h"

#include <chrono>

namespace gpurota::daemon {

// The engine's command is killed this long after everything but the engine. When the command has
// ended, `gpurota run` has the engine kill the processes left in the container.
inline constexpr Duration kEngineSees = std::chrono::seconds(1);
// All remaining processes, the engine's too, are killed this long after the lease's others.
inline constexpr Duration kEngineTakes = std::chrono::seconds(4);

// Call once. If the lease ends because its command has ended, counts the processes that the command
// left running, for a message to the lease's user.
void ask_to_end(LeaseEntry& entry);
// `late`: how long ago the processes should have ended. `main` is the first process of the command;
// null: there is none. Call again until all have ended.
void kill_leftovers(LeaseProcesses& members, const TrackedProcess* main, Duration late);

// Sends the signal of the lease's warning to the lease's processes that handle it. Returns how
// many.
int warn_programs(LeaseEntry& entry, int signal);

}  // namespace gpurota::daemon
