// Notifies the jobs of changes of their leases. State thread only.
#pragma once

#include "daemon/leases/lease_manager.h"
#include "daemon/supervised/jobs.h"
#include "daemon/watch/watch_keeper.h"

#include <optional>
#include <string>

namespace gpurota::daemon {

class JobLeases final : public LeaseEnforcement {
 public:
  // All outlive the JobLeases.
  JobLeases(const LeaseTables& tables, LeaseManager& leases, Jobs& jobs)
      : tables_(tables), leases_(leases), jobs_(jobs) {}

  // Gives the jobs the leases that the last daemon left. Call after leases and jobs have been
  // restored.
  void restore();
  void on_lease_change(const LeaseEntry& entry, bool gone);
  std::optional<std::string> end_of_command(const LeaseEntry& entry) const;
  void release(LeaseId lease, const std::string& reason) override;
  // Ends the lease: a job runs unattended, so nobody would reduce its use.
  void on_over_limit(LeaseId lease, const std::string& what) override;

 private:
  const LeaseTables& tables_;
  LeaseManager& leases_;
  Jobs& jobs_;
};

}  // namespace gpurota::daemon
