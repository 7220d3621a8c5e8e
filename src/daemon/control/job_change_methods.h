// The calls that change, export and apply jobs. State thread only.
#pragma once

#include "daemon/control/job_methods.h"
#include "daemon/control/lease_methods.h"

namespace gpurota::daemon {

class JobChangeMethods {
 public:
  JobChangeMethods(const CallContext& parts, const JobMethods& jobs, const LeaseMethods& leases)
      : parts_(parts), jobs_(jobs), leases_(leases) {}

  Outcome on(const Caller& caller, const proto::UpdateJob&);
  Outcome on(const Caller& caller, const proto::ExportJobs&);
  Outcome on(const Caller& caller, const proto::ApplyJobs&);

 private:
  // Updates the job's own lease, if there is one that can change. Returns whether the lease has
  // taken all changes.
  Result<bool> update_lease_of(const Caller& caller, const JobEntry& job,
                               const proto::UpdateJob& call);

  const CallContext& parts_;
  const JobMethods& jobs_;
  const LeaseMethods& leases_;
};

}  // namespace gpurota::daemon
