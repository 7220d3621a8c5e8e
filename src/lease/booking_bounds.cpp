#include "lease/booking_bounds.h"

#include "base/text.h"
#include "core/local_time.h"
#include "lease/allowance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace gpurota::lease {
namespace {

// Sums of GPU seconds that differ by less than this are equal.
constexpr double kRounding = 1;

double gpu_seconds(const std::vector<BookedTime>& booked, WallTime from) {
  double sum = 0;
  for (const BookedTime& each : booked) {
    const auto begin = std::max(each.from, from);
    const auto end = std::min(each.until, from + kBookingWindow);
    if (begin < end) sum += std::chrono::duration<double>(end - begin).count() * each.gpus;
  }
  return sum;
}

// The sum over a window changes linearly between the times at which an edge of the window meets an
// edge of a booking. So the fullest window begins or ends where a booking begins or ends.
std::vector<WallTime> window_beginnings(const std::vector<BookedTime>& booked) {
  std::vector<WallTime> beginnings;
  for (const BookedTime& each : booked) {
    for (const WallTime edge : {each.from, each.until}) {
      beginnings.push_back(edge);
      beginnings.push_back(edge - kBookingWindow);
    }
  }
  std::sort(beginnings.begin(), beginnings.end());
  beginnings.erase(std::unique(beginnings.begin(), beginnings.end()), beginnings.end());
  return beginnings;
}

struct Fullest {
  WallTime from{};
  double booked = 0;
  double asked = 0;
};

// The fullest of the windows that contain a part of the new bookings. Other windows have not
// changed.
Fullest fullest(const std::vector<BookedTime>& booked, const std::vector<BookedTime>& asked) {
  std::vector<BookedTime> all = booked;
  all.insert(all.end(), asked.begin(), asked.end());
  Fullest found;
  for (const WallTime from : window_beginnings(all)) {
    const double more = gpu_seconds(asked, from);
    if (more <= 0) continue;
    const double had = gpu_seconds(booked, from);
    if (had + more > found.booked + found.asked + kRounding) found = {from, had, more};
  }
  return found;
}

// "42", "10.5": rounded down, because more would be refused.
std::string hours_text(double seconds) {
  const double tenths = std::floor(std::max(seconds, 0.0) / 360 + 1e-6);
  return std::fmod(tenths, 10) == 0 ? fmt::format("{:.0f}", tenths / 10)
                                    : fmt::format("{:.1f}", tenths / 10);
}

struct Share {
  std::string_view who;  // "bob has"
  std::string_view own;  // the remedy: "cancel a booking"
  double most = 0;
};

Result<void> check_share(const Share& share, const std::vector<BookedTime>& booked,
                         const std::vector<BookedTime>& asked, WallTime now) {
  const Fullest window = fullest(booked, asked);
  if (window.booked + window.asked <= share.most + kRounding) return {};
  const double left = share.most - window.booked;
  const std::string less = left >= 360 ? fmt::format("book {} GPU hours at most", hours_text(left))
                                       : std::string("book another week");
  return fail(Code::kLimit,
              fmt::format("{} booked {} of {} GPU hours of the 7 days from {}, and {} more are "
                          "asked for: {}, {}, or ask your administrator (gpurota calendar shows "
                          "what is booked)",
                          share.who, hours_text(window.booked), hours_text(share.most),
                          local_time_text(window.from, now), hours_text(window.asked + 359), less,
                          share.own));
}

std::vector<BookedTime> of_user(const std::vector<BookedTime>& booked, uid_t uid) {
  std::vector<BookedTime> own;
  std::copy_if(booked.begin(), booked.end(), std::back_inserter(own),
               [uid](const BookedTime& each) { return each.uid == uid; });
  return own;
}

double share_of(const BookingBounds& bounds, int percent) {
  return std::chrono::duration<double>(kBookingWindow).count() * bounds.gpus * percent / 100;
}

}  // namespace

std::chrono::seconds most_booked(const BookingBounds& bounds, int percent) {
  return std::chrono::seconds(std::llround(share_of(bounds, percent)));
}

std::chrono::seconds fullest_window(const std::vector<BookedTime>& booked, WallTime now) {
  double most = 0;
  for (const WallTime from : window_beginnings(booked)) {
    if (from + kBookingWindow > now) most = std::max(most, gpu_seconds(booked, from));
  }
  return std::chrono::seconds(std::llround(most));
}

Result<void> check_booking_bounds(const BookingBounds& bounds,
                                  const std::vector<BookedTime>& booked, const BookingsAsked& asked,
                                  WallTime now) {
  const auto lasts = std::chrono::ceil<std::chrono::seconds>(asked.lasts);
  if (bounds.longest.count() > 0 && lasts > bounds.longest) {
    return fail(Code::kLimit,
                fmt::format("the site allows bookings of {} at most, {} were asked for: ask for "
                            "less, or ask your administrator",
                            duration_text(bounds.longest), duration_text(lasts)));
  }
  std::vector<BookedTime> wished;
  for (const WallTime from : asked.begins) {
    wished.push_back({asked.uid, from, from + asked.lasts, asked.gpus});
  }
  if (bounds.user_percent < 100) {
    const std::string who = display_text(asked.user, 32) + " has";
    GPUROTA_TRY(check_share({who, "cancel a booking", share_of(bounds, bounds.user_percent)},
                            of_user(booked, asked.uid), wished, now));
  }
  if (bounds.all_percent < 100) {
    GPUROTA_TRY(check_share({"all users together have", "ask others to cancel bookings",
                             share_of(bounds, bounds.all_percent)},
                            booked, wished, now));
  }
  return {};
}

}  // namespace gpurota::lease
