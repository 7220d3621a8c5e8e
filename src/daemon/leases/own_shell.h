// A request from within a lease that could only start when that lease has ended: it would wait for
// its own shell. State thread only.
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
  // The lease in whose shell the caller says that it is. Counts for a command, and not for another
  // reservation, which lasts without the shell.
  std::optional<LeaseId> said{};
  // "--gpus": the options to leave out to use the lease of the shell.
  std::string options{};
};

// kInvalid if the only obstacle to the request is the lease that the caller itself runs in.
Result<void> check_own_shell(const OwnShell::Parts& parts, const AcquireRequest& request,
                             const OwnShell& shell);

}  // namespace gpurota::daemon
