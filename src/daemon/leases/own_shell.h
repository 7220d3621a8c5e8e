// Refuses a request from the shell of a lease if the request could only start after the end of that
// lease: such a request would wait for its own shell. State thread only.
#pragma once

#include "base/result.h"
#include "daemon/gpus/gpu_table.h"
#include "daemon/leases/gpu_rooms.h"
#include "daemon/leases/lease_tables.h"

#include <optional>
#include <string>

namespace gpurota::daemon {

struct OwnShell {
  // All outlive the call.
  struct Parts {
    const LeaseTables& tables;
    const GpuRooms& rooms;
    const GpuTable& gpus;
    ports::Processes& processes;
  };
  // The lease in whose shell the caller says it runs. Considered only if the request is for a
  // command, because a reservation lasts without the shell.
  std::optional<LeaseId> said{};
  // The options that the user has to leave out to use the lease of the shell, such as "--gpus".
  std::string options{};
};

// kInvalid if the only obstacle to the request is the lease that the caller itself runs in.
Result<void> check_own_shell(const OwnShell::Parts& parts, const AcquireRequest& request,
                             const OwnShell& shell);

}  // namespace gpurota::daemon
