// Commands that run under a reservation (`gpurota run --lease`): each has its own first process, its
// own gpurota run that holds it, and its own end; the reservation goes on without it. State thread
// only; LeaseManager drives them (lease_commands.cpp).
#pragma once

#include "core/time.h"
#include "daemon/leases/lease_processes.h"
#include "daemon/leases/tracked_process.h"
#include "ports/store.h"

#include <chrono>
#include <optional>

#include <sys/types.h>

namespace gpurota::daemon {

// So many at once under one reservation.
constexpr std::size_t kMaxCommandsPerLease = 256;

struct CommandStart {
  pid_t pid = 0;            // a child of the caller that has not executed anything yet
  ports::ProcessId caller;  // its gpurota run
  bool subreaper = false;
  std::optional<std::chrono::milliseconds> lasts;  // enforced
};

struct LeaseCommand {
  explicit LeaseCommand(ports::Processes& processes) : members(processes) {}

  TrackedProcess holder;
  TrackedProcess main;
  LeaseProcesses members;
  std::optional<WallTime> ends;
  bool ending = false;
  TimePoint kill_at{};
  ports::EventLoop::SourcePtr timer;
  ports::EventLoop::SourcePtr expiry;

  ports::StoredCommand stored() const { return {holder.id, main.id, members.cgroup(), ends}; }
};

}  // namespace gpurota::daemon
