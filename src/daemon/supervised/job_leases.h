// What happens to the leases of jobs, told to the jobs. State thread only.
#pragma once

#include "daemon/leases/lease_manager.h"
#include "daemon/supervised/jobs.h"
#include "daemon/watch/watch_keeper.h"

#include <optional>
#include <string>

namespace gpurota::daemon {

class JobLeases final : public LeaseEnforcement {
 public:
  // Both outlive it.
  JobLeases(const LeaseTables& tables, LeaseManager& leases, Jobs& jobs)
      : tables_(tables), leases_(leases), jobs_(jobs) {}

  // The leases that the last daemon left. After both have been restored.
  void restore();
  void on_lease_change(const LeaseEntry& entry, bool gone);
  std::optional<std::string> end_of_command(const LeaseEntry& entry) const;
  void release(LeaseId lease, const std::string& reason) override;
  // A job that nobody watches is not left to go on like that.
  void on_over_limit(LeaseId lease, const std::string& what) override;

 private:
  const LeaseTables& tables_;
  LeaseManager& leases_;
  Jobs& jobs_;
};

}  // namespace gpurota::daemon
