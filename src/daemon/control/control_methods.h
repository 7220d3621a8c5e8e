// Passes each call of the control protocol to the group that answers it (*_methods.h), and does
// what all calls need: permissions, the audit log, shared answers. State thread only.
#pragma once

#include "daemon/control/booking_methods.h"
#include "daemon/control/filler_methods.h"
#include "daemon/control/history_methods.h"
#include "daemon/control/job_change_methods.h"
#include "daemon/control/job_methods.h"
#include "daemon/control/lease_methods.h"
#include "daemon/control/limit_methods.h"
#include "daemon/control/notice_methods.h"
#include "daemon/control/pod_methods.h"
#include "daemon/control/queue_methods.h"
#include "daemon/control/turns_methods.h"
#include "daemon/control/web_methods.h"

#include <string>

namespace gpurota::daemon {

class ControlMethods final : public CallHandler {
 public:
  explicit ControlMethods(CallContext parts) : parts_(std::move(parts)) {}

  Outcome call(const Caller& caller, const proto::Call& call) override;
  void greet(uid_t user, const std::vector<gid_t>& groups) override {
    parts_.users.greet(user, groups);
  }
  void abandon(LeaseId lease) override { parts_.leases.abandon(lease); }
  void leave(RequestId request) override {
    parts_.queue.leave(request, Error{Code::kGone, 0, "its connection was closed"});
  }
  std::string describe(const Caller& caller, const LeaseEntry& entry, bool gone) const override {
    return leases_.describe(caller, entry, gone);
  }
  std::string notice(const Caller& caller, LeaseId lease,
                     const std::string& message) const override {
    return leases_.notice(caller, lease, message);
  }
  std::string granted(const Caller& caller, const LeaseEntry& lease) const override {
    return queue_.granted(caller, lease);
  }
  std::string waits(const Caller& caller, const QueueEntry& entry) const override {
    return queue_.waits(caller, entry);
  }
  void on_lease_change(const LeaseEntry& entry, bool gone) { leases_.on_lease_change(entry, gone); }

 private:
  // Carries out a call whose caller is known.
  template <class Method>
  Outcome call_as(const Caller& caller, const Method& params);
  // Passes the call to the first group that has the method, else to this class.
  template <class Method>
  Outcome answer(const Caller& caller, const Method& params);
  // The number of changes that shared answers show, but that no code reports with
  // SharedAnswers::changed().
  std::uint64_t changes() const;
  // The answer of `Method` with the result of `view`, or the kept text of an earlier answer.
  template <class Method, class View>
  Outcome shared(const Caller& caller, SharedAnswers::About about, const View& view);
  Outcome on(const Caller& caller, const proto::GetInfo&);
  Outcome on(const Caller& caller, const proto::Status&);
  Outcome on(const Caller& caller, const proto::ListProcesses&);
  Outcome on(const Caller& caller, const proto::Doctor&);
  Outcome on(const Caller& caller, const proto::Health&);
  Outcome on(const Caller& caller, const proto::Reload&);
  Outcome on(const Caller& caller, const proto::ShowConfig&);
  Outcome on(const Caller& caller, const proto::ServiceInfo&);
  Outcome on(const Caller& caller, const proto::InterfaceDescription&);

  CallContext parts_;
  LeaseMethods leases_{parts_};
  BookingMethods bookings_{parts_, leases_};
  QueueMethods queue_{parts_, leases_, bookings_};
  JobMethods jobs_{parts_};
  JobChangeMethods job_changes_{parts_, jobs_, leases_};
  FillerMethods fillers_{parts_};
  HistoryMethods history_{parts_};
  TurnsMethods turns_{parts_};
  LimitMethods limits_{parts_};
  NoticeMethods notices_{parts_};
  PodMethods pods_{parts_, leases_, queue_};
  WebMethods web_{parts_};
};

}  // namespace gpurota::daemon
