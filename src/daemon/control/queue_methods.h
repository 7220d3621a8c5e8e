// The calls about requests in the queue, and about draining GPUs. State thread only.
#pragma once

#include "daemon/control/booking_methods.h"
#include "daemon/control/lease_methods.h"

#include <string>
#include <vector>

namespace gpurota::daemon {

class QueueMethods {
 public:
  QueueMethods(const CallContext& parts, LeaseMethods& leases, BookingMethods& bookings)
      : parts_(parts), leases_(leases), bookings_(bookings) {}

  Outcome on(const Caller& caller, const proto::Acquire&);
  Outcome on(const Caller& caller, const proto::Enqueue&);
  Outcome on(const Caller& caller, const proto::CheckRequest&);
  Outcome on(const Caller& caller, const proto::FindAlternatives&);
  Outcome on(const Caller& caller, const proto::ListRequests&);
  Outcome on(const Caller& caller, const proto::Cancel&);
  Outcome on(const Caller& caller, const proto::Drain&);
  Outcome on(const Caller& caller, const proto::Undrain&);

  // Gives a lease, or a place in the queue. If the caller is a run of a job, the job gets the
  // reason of a refusal.
  Outcome place(const Caller& caller, const AcquireRequest& request);

  // As in CallHandler.
  std::string granted(const Caller& caller, const LeaseEntry& lease) const;
  std::string waits(const Caller& caller, const QueueEntry& entry) const;

 private:
  enum class Waiting { kForFillersOnly, kInTheQueue };
  bool may_change(const Caller& caller, const lease::Refusal& refusal) const;
  // For Acquire and Enqueue: gives a lease, or a place in the queue.
  Outcome ask(const Caller& caller, const proto::LeaseRequest& wanted, std::string ticket,
              Waiting waiting);
  struct Ways {
    std::vector<lease::WayOut> found;
    LeaseKind kind;  // of the requested lease
  };
  Result<Ways> ways_out(const Caller& caller, const proto::FindAlternatives& call) const;
  proto::Alternative alternative(const lease::WayOut& way, LeaseKind kind) const;
  Result<void> set_draining(const Caller& caller, const std::vector<std::string>& names,
                            bool draining, const std::string& reason);

  const CallContext& parts_;
  LeaseMethods& leases_;
  BookingMethods& bookings_;
  std::uint64_t last_acquire_ = 0;
};

}  // namespace gpurota::daemon
