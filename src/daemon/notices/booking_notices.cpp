#include "daemon/notices/booking_notices.h"

#include "core/local_time.h"

#include <fmt/format.h>

#include <optional>

namespace gpurota::daemon {
namespace {

std::optional<NoticeKind> kind_of(BookingStep step) {
  switch (step) {
    case BookingStep::kMade:
    case BookingStep::kSoon:  // booking_warnings.h
      return std::nullopt;
    case BookingStep::kMoved:
      return NoticeKind::kBeginsSoon;
    case BookingStep::kReady:
    case BookingStep::kBegun:
      return NoticeKind::kBegun;
    case BookingStep::kTrouble:
    case BookingStep::kMissed:
    case BookingStep::kUnused:
      return NoticeKind::kCannotBegin;
    case BookingStep::kCancelled:
      return NoticeKind::kRequestCancelled;
  }
  return std::nullopt;
}

}  // namespace

std::string BookingNotices::text_of(const BookingNews& news) const {
  const BookingEntry& booking = news.booking;
  const std::string id = to_string(booking.id);
  const WallTime now = parts_.wall_clock();
  switch (news.step) {
    case BookingStep::kMoved:
      return fmt::format("your booking {} has {} now, as {}; it begins at {}", id,
                         names_of(booking.kept, parts_.gpus), news.why,
                         local_time_text(booking.begins, now));
    case BookingStep::kReady:
      return fmt::format(
          "the time of your booking {0} of {1} has come; work that others began there ends when "
          "you "
          "use it: gpurota run --lease {0} -- …, or gpurota claim {0}",
          id, names_of(booking.kept, parts_.gpus));
    case BookingStep::kUnused:
      return fmt::format("your booking {} of {} has ended: {}", id,
                         names_of(booking.kept, parts_.gpus), news.why);
    case BookingStep::kBegun: {
      const std::string lease = to_string(news.lease->lease.id);
      return fmt::format(
          "your booking {} has begun: {} is yours until {}; to use it: gpurota run --lease {} -- …",
          id, lease, local_time_text(booking.ends(), now), lease);
    }
    case BookingStep::kTrouble:
      return fmt::format(
          "your booking {} of {}, at {}, cannot begin: {}; it begins when that is over", id,
          names_of(booking.kept, parts_.gpus), local_time_text(booking.begins, now), news.why);
    case BookingStep::kMissed:
      return fmt::format("your booking {} is over and has never begun: {}", id, news.why);
    case BookingStep::kMade:
    case BookingStep::kSoon:
    case BookingStep::kCancelled:
      break;
  }
  return fmt::format("your booking {} of {}, at {}, was cancelled: {}", id,
                     names_of(booking.kept, parts_.gpus), local_time_text(booking.begins, now),
                     news.why);
}

void BookingNotices::on_booking(const BookingNews& news) {
  const auto kind = kind_of(news.step);
  const bool own = news.by && news.by->uid == news.booking.asked.uid;
  if (!kind || own) return;
  Notice notice{.kind = *kind, .to = news.booking.asked.uid};
  if (news.lease) notice.lease = news.lease->lease.id;
  for (const GpuUuid& gpu : news.booking.kept) notice.gpus.push_back(parts_.gpus.name_of(gpu));
  notice.text = text_of(news);
  if (news.by) {
    notice.reason = news.by->reason;
    notice.by = news.by->uid;
  }
  parts_.listener.on_notice(notice);
}

}  // namespace gpurota::daemon
