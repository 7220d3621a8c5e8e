#include "daemon/leases/past_bookings.h"

#include "base/log.h"
#include "daemon/leases/user_allowance.h"
#include "lease/booking_bounds.h"

#include <algorithm>
#include <cmath>

namespace gpurota::daemon {

void PastBookings::restore() {
  if (!parts_.history) return;
  const auto stored = parts_.history->load_past_bookings();
  if (!stored) {
    log::error("cannot read which bookings have begun, counting none of them",
               {{"error", stored.error().message}});
    return;
  }
  for (const ports::StoredPastBooking& booking : *stored)
    parts_.tables.past_bookings[booking.id] = booking;
  // A lease that ended while no daemon ran counts until now, because nobody knows when it ended.
  const WallTime now = parts_.wall_clock();
  for (auto& [id, booking] : parts_.tables.past_bookings) {
    if (booking.until <= now || parts_.tables.find(booking.lease)) continue;
    booking.until = std::max(now, booking.from);
    save(booking);
  }
}

void PastBookings::on_booking(const BookingNews& news) {
  if (news.step != BookingStep::kBegun) return;
  const BookingEntry& booking = news.booking;
  const double gpus = booked_parts(booking.kept, booking.asked.placement.memory, parts_.gpus);
  const ports::StoredPastBooking begun{
      booking.id,     news.lease->lease.id, booking.asked.uid,
      booking.begins, booking.ends(),       static_cast<std::uint64_t>(std::llround(gpus * 1e6))};
  parts_.tables.past_bookings[booking.id] = begun;
  save(begun);
}

void PastBookings::on_lease_change(const LeaseEntry& entry, bool gone) {
  if (!gone || entry.lease.kind != LeaseKind::kReservation) return;
  const auto it =
      std::find_if(parts_.tables.past_bookings.begin(), parts_.tables.past_bookings.end(),
                   [&](const auto& each) { return each.second.lease == entry.lease.id; });
  const WallTime now = parts_.wall_clock();
  if (it == parts_.tables.past_bookings.end() || it->second.until <= now) return;
  it->second.until = std::max(now, it->second.from);
  save(it->second);
}

// Also removes bookings that ended before the time that the bounds consider.
void PastBookings::save(const ports::StoredPastBooking& booking) {
  ports::HistoryBatch batch;
  batch.bookings.push_back(booking);
  const WallTime before = parts_.wall_clock() - lease::kBookingWindow;
  for (const auto& [id, each] : parts_.tables.past_bookings) {
    if (each.until < before && id != booking.id) batch.forgotten_bookings.push_back(id);
  }
  for (const RequestId id : batch.forgotten_bookings) parts_.tables.past_bookings.erase(id);
  if (!parts_.history) return;
  if (auto saved = parts_.history->save(batch); !saved) {
    log::error("cannot store how long a booking lasts, counting it until the next start",
               {{"request", to_string(booking.id)}, {"error", saved.error().message}});
  }
}

}  // namespace gpurota::daemon
