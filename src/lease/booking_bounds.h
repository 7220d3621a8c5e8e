// Limits how much of the machine users may have booked, in GPU hours. Pure.
//
// Called by the daemon before a booking of a user who is not an administrator is placed. Bookings
// of administrators are neither limited nor counted, so the caller leaves them out.
#pragma once

#include "base/result.h"
#include "core/time.h"

#include <chrono>
#include <string>
#include <vector>

#include <sys/types.h>

namespace gpurota::lease {

// The percentages below are of the GPU hours of any period of this length.
inline constexpr std::chrono::hours kBookingWindow{7 * 24};

struct BookingBounds {
  std::chrono::seconds longest{0};  // of one booking; zero: no limit
  int user_percent = 100;           // of the window's GPU hours; 100: no limit
  int all_percent = 100;
  double gpus = 0;  // of the machine
};

// A booking that is still to come, or the time that a past booking had.
struct BookedTime {
  uid_t uid = 0;
  WallTime from;
  WallTime until;
  double gpus = 0;  // a slice counts as a fraction of a GPU
};

// Bookings that one user asks for together.
struct BookingsAsked {
  uid_t uid = 0;
  std::string user;  // for the message
  std::vector<WallTime> begins;
  std::chrono::milliseconds lasts{0};
  double gpus = 0;
};

// kLimit, with a sentence that names the limit, what is left of it and what to do.
Result<void> check_booking_bounds(const BookingBounds& bounds,
                                  const std::vector<BookedTime>& booked, const BookingsAsked& asked,
                                  WallTime now);

// The booked GPU time that the window may have. The result has no meaning for 100 percent, which is
// no limit.
std::chrono::seconds most_booked(const BookingBounds& bounds, int percent);

// The GPU time booked in the fullest window that has not ended.
std::chrono::seconds fullest_window(const std::vector<BookedTime>& booked, WallTime now);

}  // namespace gpurota::lease
