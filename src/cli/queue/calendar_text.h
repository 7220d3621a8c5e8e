// The calendar of bookings and of leases that have an end: for people, and in the format of RFC
// 5545. Pure, but for the time zone.
#pragma once

#include "cli/text/table.h"
#include "core/time.h"
#include "proto/methods.h"

#include <string>

namespace gpurota::cli {

// A row for each booking and lease on each of this many days; an empty day has a row, too.
std::string calendar_text(const proto::Status::Reply& reply, int days, const Layout& layout,
                          WallTime now);
// Bookings, and reservations that have begun; each has the same UID forever. `host`: this machine.
std::string calendar_ical(const proto::Status::Reply& reply, const std::string& host, WallTime now);

// "R7: GPU 0,1 from Mon 09:00 to 18:00".
std::string booking_line(const proto::Booking& booking, WallTime now);
// The line of each booking, and what can be done with it.
std::string booked_text(const std::vector<proto::Booking>& bookings, WallTime now);
// For `explain`: a booking of the caller's.
std::string explain_booking(const proto::Booking& booking, WallTime now);

}  // namespace gpurota::cli
