#include "daemon/control/booking_methods.h"

#include "daemon/control/calls.h"
#include "daemon/leases/bookings.h"
#include "daemon/notices/notice_text.h"
#include "proto/codec.h"

namespace gpurota::daemon {

Outcome BookingMethods::on(const Caller& caller, const proto::Book& call) {
  if (const auto error = parts_.driver.error) return refused(*error);
  auto request = leases_.request_of(caller, call.request);
  if (!request) return refused(request.error());
  if (request->kind != LeaseKind::kReservation) {
    return refused({Code::kInvalid, 0, "only reservations can be booked"});
  }
  if (!request->name.empty()) {
    return refused({Code::kInvalid, 0, "a booking has an id, as R7, and no name"});
  }
  // Which users and processes will be on the GPUs at the time of the booking is not known yet.
  request->placement.take_over.reset();
  request->command.clear();
  const bool free = parts_.views.is_administrator(caller.uid);
  const bool on_time = call.on_time.value_or(false);
  if (on_time && !free) {
    return refused({Code::kDenied, 0,
                    "only administrators can have others leave when a booking begins: without "
                    "--on-time they leave when it is used"});
  }
  const auto made = parts_.bookings.make(*request, call.begins, free, on_time);
  if (!made) return refused(made.error());
  proto::Book::Reply reply;
  for (const RequestId id : *made) {
    if (const BookingEntry* const entry = parts_.tables.find_booking(id)) {
      reply.bookings.push_back(parts_.views.booking(*entry, caller.uid));
    }
  }
  return replied<proto::Book>(reply);
}

Outcome BookingMethods::on(const Caller& caller, const proto::Claim& call) {
  const Error unknown{Code::kNotFound, 0,
                      "there is no booking " + to_string(call.request_id) +
                          ": it may be over, or cancelled (gpurota calendar shows the others)"};
  const auto owner = parts_.bookings.owner_of(call.request_id);
  if (!owner) return refused(unknown);
  if (*owner != caller.uid && !parts_.views.is_administrator(caller.uid)) {
    return refused({Code::kDenied, 0, to_string(call.request_id) + " is somebody else's booking"});
  }
  const auto claimed = parts_.bookings.claim(call.request_id);
  if (!claimed) return refused(claimed.error());
  proto::Claim::Reply reply;
  reply.lease_id = claimed->lease;
  if (!claimed->lease) reply.waiting_for = claimed->why;
  return replied<proto::Claim>(reply);
}

Outcome BookingMethods::on(const Caller& caller, const proto::ListBookings&) {
  proto::ListBookings::Reply reply;
  for (const BookingEntry& entry : parts_.tables.bookings) {
    reply.bookings.push_back(parts_.views.booking(entry, caller.uid));
  }
  return replied<proto::ListBookings>(reply);
}

std::optional<Outcome> BookingMethods::cancel(const Caller& caller, const proto::Cancel& call) {
  const BookingEntry* const entry = parts_.tables.find_booking(call.request_id);
  if (!entry) return std::nullopt;
  const bool own = entry->asked.uid == caller.uid;
  if (!own && !parts_.views.is_administrator(caller.uid)) {
    return refused({Code::kDenied, 0, to_string(call.request_id) + " is somebody else's booking"});
  }
  const Author by{caller.uid, call.reason.value_or("")};
  const std::string why = "it was cancelled by " + parts_.views.user_name(caller.uid) +
                          (own ? "" : " (administrator)") + said_text(by.reason);
  parts_.bookings.cancel(call.request_id, why, by);
  return replied<proto::Cancel>({});
}

}  // namespace gpurota::daemon
