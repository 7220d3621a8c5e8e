// Whether a lease can be parked (docs/design/park.md), as far as that is known before anything is
// done. State thread only; changes nothing.
#pragma once

#include "config/config.h"
#include "daemon/gpus/driver_state.h"
#include "daemon/gpus/gpu_table.h"
#include "daemon/leases/attribution.h"
#include "daemon/leases/lease_entry.h"
#include "daemon/tenants/tenant_table.h"
#include "ports/processes.h"

#include <string>
#include <vector>

namespace gpurota::daemon {

class ParkChecks {
 public:
  // All must outlive the ParkChecks.
  struct Parts {
    const config::Config& config;
    const GpuTable& gpus;
    const DriverState& driver;
    const TenantTable& tenants;
    Attribution& attribution;
    ports::Processes& processes;
  };

  // Host memory that must be left beside the memory of the parked processes.
  static constexpr Bytes kMargin = mib(256);

  explicit ParkChecks(Parts parts) : parts_(parts) {}

  // An error says why not, and what to do. `in_motion`: the memory of leases that are being parked,
  // and is not in host memory yet.
  Result<void> check(const LeaseEntry& entry, Bytes in_motion) const;
  // The processes of the lease that would be parked.
  std::vector<ports::ProcessId> processes_of(LeaseId lease) const;
  // The memory that the driver lists for the process on all its GPUs.
  Bytes used_by(const ports::ProcessId& process) const;

 private:
  Result<void> check_kind(const LeaseEntry& entry) const;
  Result<void> check_driver() const;
  Result<void> check_processes(LeaseId lease) const;
  Result<void> check_host_memory(LeaseId lease, Bytes in_motion) const;

  Parts parts_;
};

}  // namespace gpurota::daemon
