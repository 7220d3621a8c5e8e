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
  // The lease that this was asked for already; with the pod's name, if that is new. kUnavailable
  // while it ends.
  Result<const LeaseEntry*> find_made(const Caller& caller, const AcquireRequest& request);

  const CallContext& parts_;
  LeaseMethods& leases_;
  QueueMethods& queue_;
};

}  // namespace gpurota::daemon
