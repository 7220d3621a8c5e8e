#include "daemon/history/booking_events.h"

#include "core/local_time.h"

#include <fmt/format.h>

namespace gpurota::daemon {

void BookingEvents::on_booking(const BookingNews& news) {
  const BookingEntry& booking = news.booking;
  const std::string id = to_string(booking.id);
  const std::string gpus = names_of(booking.kept, gpus_);
  Recorder::Event event;
  event.uid = booking.asked.uid;
  switch (news.step) {
    case BookingStep::kMade:
      event.type = proto::EventType::kBookingMade;
      event.message = fmt::format("{} is booked: {} from {} to {}", id, gpus,
                                  local_time_text(booking.begins, booking.made),
                                  local_time_text(booking.ends(), booking.made));
      break;
    case BookingStep::kMoved:
      event.type = proto::EventType::kBookingMoved;
      event.message = fmt::format("{} has {} now: {}", id, gpus, news.why);
      break;
    case BookingStep::kBegun:
      event.type = proto::EventType::kBookingBegun;
      event.lease = news.lease->lease.id;
      event.message = fmt::format("{} has begun as {}", id, to_string(news.lease->lease.id));
      break;
    case BookingStep::kCancelled:
      event.type = proto::EventType::kBookingCancelled;
      event.message = fmt::format("{} is no longer booked: {}", id, news.why);
      break;
    case BookingStep::kMissed:
      event.type = proto::EventType::kBookingMissed;
      event.message = fmt::format("{} is over and has never begun: {}", id, news.why);
      break;
    case BookingStep::kUnused:
      event.type = proto::EventType::kBookingMissed;
      event.message = fmt::format("{} has ended: {}", id, news.why);
      break;
    case BookingStep::kSoon:
    case BookingStep::kReady:
    case BookingStep::kTrouble:
      return;  // states of the booking, which only its user sees
  }
  recorder_.record(std::move(event));
}

}  // namespace gpurota::daemon
