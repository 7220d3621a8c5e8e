// The call by which the containers of pods get leases (docs/design/kubernetes.md). State thread
// only.
#pragma once

#include "daemon/control/queue_methods.h"

namespace gpurota::daemon {

class PodMethods {
 public:
  PodMethods(const CallContext& parts, LeaseMethods& leases, QueueMethods& queue)
      : parts_(parts), leases_(leases), queue_(queue) {}

  Outcome on(const Caller& caller, const proto::AcquireForPod&);

 private:
  Result<AcquireRequest> request_of(const Caller& caller, const proto::AcquireForPod& call) const;
  // The lease that an earlier call for the same allocation made; null: none. kUnavailable: that
  // lease is ending; kDenied: that lease has another token.
  Result<const LeaseEntry*> find_made(const Caller& caller, const AcquireRequest& request);

  // `outcome`, once the driver limits the lease. Where the site requires that and the driver does
  // not, a refusal, which ends the lease if nobody uses it.
  Outcome when_limited(LeaseId lease, Outcome outcome);

  const CallContext& parts_;
  LeaseMethods& leases_;
  QueueMethods& queue_;
};

}  // namespace gpurota::daemon
