// The calls about existing leases, and what other calls need of a lease or of a request for one.
// State thread only.
#pragma once

#include "daemon/control/call_context.h"
#include "daemon/control/ended_leases.h"

#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace gpurota::daemon {

class LeaseMethods final {
 public:
  explicit LeaseMethods(const CallContext& parts) : parts_(parts) {}

  Outcome on(const Caller& caller, const proto::Start&);
  Outcome on(const Caller& caller, const proto::Hold&);
  Outcome on(const Caller& caller, const proto::Release&);
  Outcome on(const Caller& caller, const proto::Update&);
  Outcome on(const Caller& caller, const proto::GetEnvironment&);
  Outcome on(const Caller& caller, const proto::Park&);
  Outcome on(const Caller& caller, const proto::Unpark&);

  // As in CallHandler.
  std::string describe(const Caller& caller, const LeaseEntry& entry, bool gone) const;
  std::string notice(const Caller& caller, LeaseId lease, const std::string& message) const;
  // Keeps how a lease ended, for clients that ask about the lease later.
  void on_lease_change(const LeaseEntry& entry, bool gone);

  // kNotFound: there is no such lease; kDenied: the lease is somebody else's, and the caller is not
  // an administrator.
  Result<const LeaseEntry*> own_lease(const Caller& caller, LeaseId id) const;
  Result<AcquireRequest> request_of(const Caller& caller, const proto::LeaseRequest& wanted) const;
  // kLimit: a request waits for a GPU of the lease, and the update asks for more time or memory.
  Result<void> check_update(const Caller& caller, const LeaseEntry& entry,
                            const proto::Update& call) const;
  // The name under which the lease of a pod is shown. kDenied: the caller may not set it; kInvalid:
  // the lease is not of a pod, or a name is not valid in Kubernetes.
  Result<std::string> name_for_pod(const Caller& caller, const LeaseEntry& entry,
                                   const proto::Pod& pod) const;
  // The outcome of a refusal. If the caller is a run of a job, the job gets the reason.
  Outcome refused_to(const Caller& caller, Outcome outcome, const Error& error);

 private:
  // As DriverLimits::check_start(); ends the lease after an error.
  Result<bool> check_driver_limit(LeaseId id);
  bool may_pass(uid_t uid, const Error& error) const;
  // The message to the holder of a lease.
  proto::Hold::Reply last_word(const Caller& caller, const LeaseEntry& entry, bool gone) const;
  Result<std::vector<LeaseId>> chosen_leases(const Caller& caller,
                                             const proto::Release& call) const;

  // The outcome of a call to park a lease, or to bring it back: it begins, goes on, or has ended.
  template <class Method>
  Outcome park_or_back(const Caller& caller, LeaseId lease, bool parks);

  const CallContext& parts_;
  EndedLeases ended_;
  // The calls that began or joined the parking or unparking of a lease: the lease, and the pid and
  // start of the calling process.
  std::set<std::tuple<LeaseId, pid_t, std::uint64_t>> park_calls_;
};

}  // namespace gpurota::daemon
