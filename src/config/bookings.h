// Settings of bookings: a part of config.h. Plain data.
#pragma once

#include <chrono>
#include <optional>

namespace gpurota::config {

// [bookings]: GPUs that are kept for a later time (docs/design/bookings.md).
struct Bookings {
  // The treatment of work without a stated time on GPUs that somebody books later.
  enum class OpenEnded {
    kUntilBooking,  // the work starts, and leaves when a booking of its GPUs is used
    kWait,          // the work waits until no booking of its GPUs is known
  };

  OpenEnded open_ended = OpenEnded::kUntilBooking;
  // Work without a stated time starts on GPUs that nobody has booked for so long.
  std::chrono::seconds min_unbooked = std::chrono::hours(1);
  // A booking that nobody uses for so long, while somebody waits, ends. Zero: never.
  std::chrono::seconds no_show = std::chrono::minutes(30);
  // The bounds of users who are not administrators.
  std::chrono::seconds longest = std::chrono::hours(72);  // of one booking; zero: no bound
  int user_share_percent = 25;  // of the GPU hours of any 7 days, for one user; 100: no bound
  int all_share_percent = 50;   // the same for all these users together

  bool operator==(const Bookings&) const = default;
};

// For how long nothing may be booked where work without a stated time starts; empty: as long as it
// lasts.
inline std::optional<std::chrono::milliseconds> unbooked_for(const Bookings& bookings) {
  if (bookings.open_ended == Bookings::OpenEnded::kWait) return std::nullopt;
  return bookings.min_unbooked;
}

}  // namespace gpurota::config
