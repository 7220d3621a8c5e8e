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
  // Cancels a booking. Empty: the request is not a booking.
  std::optional<Outcome> cancel(const Caller& caller, const proto::Cancel&);

 private:
  const CallContext& parts_;
  LeaseMethods& leases_;
};

}  // namespace gpurota::daemon
