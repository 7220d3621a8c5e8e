// The calls about bookings. State thread only.
#pragma once

#include "daemon/control/lease_methods.h"

#include <optional>

namespace gpurota::daemon {

class BookingMethods {
 public:
  BookingMethods(const CallContext& parts, LeaseMethods& leases) : parts_(parts), leases_(leases) {}

  Outcome on(const Caller& caller, const proto::Book&);
  Outcome on(const Caller& caller, const proto::Claim&);
  Outcome on(const Caller& caller, const proto::ListBookings&);
  // Of a request that is a booking; nothing: it is none.
  std::optional<Outcome> cancel(const Caller& caller, const proto::Cancel&);

 private:
  const CallContext& parts_;
  LeaseMethods& leases_;
};

}  // namespace gpurota::daemon
