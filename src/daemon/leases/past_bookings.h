// Keeps the bookings of the last days that have begun, because they count for the bounds of
// lease/booking_bounds.h. State thread only.
//
// A booking counts until its lease is gone or its booked time is over, whichever comes first.
// Bookings that are stored in the history outlive a restart.
#pragma once

#include "daemon/gpus/gpu_table.h"
#include "daemon/leases/bookings.h"
#include "daemon/leases/lease_tables.h"
#include "ports/history.h"

#include <functional>

namespace gpurota::daemon {

class PastBookings final {
 public:
  // All must outlive the PastBookings. `history` null: a booking counts until the daemon ends.
  struct Parts {
    ports::History* history;
    LeaseTables& tables;
    const GpuTable& gpus;
    std::function<WallTime()> wall_clock;
  };

  explicit PastBookings(Parts parts) : parts_(std::move(parts)) {}

  // Call after LeaseManager::restore().
  void restore();
  void on_booking(const BookingNews& news);
  void on_lease_change(const LeaseEntry& entry, bool gone);

 private:
  void save(const ports::StoredPastBooking& booking);

  Parts parts_;
};

}  // namespace gpurota::daemon
