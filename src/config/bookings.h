// Settings of bookings: a part of config.h. Plain data.
#pragma once

#include <chrono>
#include <optional>

namespace gpurota::config {

// [bookings]: GPUs that are kept for a later time (docs/design/bookings.md).
struct Bookings {
  // How work without a stated end is treated on GPUs that somebody has booked for a later time.
  enum class OpenEnded {
    kUntilBooking,  // the work starts, and leaves when a booking of its GPUs is used
    kWait,          // the work waits until its GPUs have no known booking
  };

  OpenEnded open_ended = OpenEnded::kUntilBooking;
  // Work without a stated end starts on GPUs that are not booked for at least this long.
  std::chrono::seconds min_unbooked = std::chrono::hours(1);
  // A booking that is unused for this long, while somebody waits, ends. Zero: never.
  std::chrono::seconds no_show = std::chrono::minutes(30);
  // The limits for users who are not administrators.
  std::chrono::seconds longest = std::chrono::hours(72);  // of one booking; zero: no limit
  int user_share_percent = 25;  // of the GPU hours of any 7 days, for one user; 100: no limit
  int all_share_percent = 50;   // the same for all these users together

  bool operator==(const Bookings&) const = default;
};

// Work without a stated end starts on a GPU only if the GPU is not booked for this long from then
// on; empty: for as long as the work lasts.
inline std::optional<std::chrono::milliseconds> unbooked_for(const Bookings& bookings) {
  if (bookings.open_ended == Bookings::OpenEnded::kWait) return std::nullopt;
  return bookings.min_unbooked;
}

}  // namespace gpurota::config
