// The calls that change jobs, and that write them out and read them in. State thread only.
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
  // Of its lease, if it has one of its own that can be changed: that it has been.
  Result<bool> update_lease_of(const Caller& caller, const JobEntry& job,
                               const proto::UpdateJob& call);

  const CallContext& parts_;
  const JobMethods& jobs_;
  const LeaseMethods& leases_;
};

}  // namespace gpurota::daemon
