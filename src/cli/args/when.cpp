#include "cli/args/when.h"

#include "base/text.h"
#include "cli/text/time_text.h"
#include "core/local_time.h"
#include "proto/text_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>

namespace gpurota::cli {
namespace {

constexpr int kDaysOfWeek = 7;

std::optional<WallTime> time_of_fields(std::tm fields) {
  fields.tm_isdst = -1;
  const std::time_t seconds = std::mktime(&fields);
  if (seconds == -1) return std::nullopt;
  return WallTime(std::chrono::seconds(seconds));
}

// "09:00", with nothing after it.
bool read_clock(const std::string& text, std::tm& into) {
  const char* const end = ::strptime(text.c_str(), "%H:%M", &into);
  into.tm_sec = 0;
  return end != nullptr && *end == '\0';
}

// 0 (Sunday) to 6; nothing: not a day.
std::optional<int> weekday_of(std::string word) {
  constexpr std::array<std::string_view, kDaysOfWeek> kNames = {
      "sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"};
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (int day = 0; day < kDaysOfWeek; ++day) {
    const std::string_view name = kNames[static_cast<std::size_t>(day)];
    if (word.size() >= 3 && name.starts_with(word)) return day;
  }
  return std::nullopt;
}

// The first time later than `after` at which the clock shows `clock`, on a day for which
// fits(number of days since the day of `after`, day of the week) is true. Nothing: no day within a
// week of `after` fits.
template <class Fits>
std::optional<std::tm> next_day(const std::tm& clock, WallTime after, Fits fits) {
  for (int days = 0; days <= kDaysOfWeek; ++days) {
    std::tm fields = local_fields(after);
    fields.tm_mday += days;
    fields.tm_hour = clock.tm_hour;
    fields.tm_min = clock.tm_min;
    fields.tm_sec = 0;
    const auto time = time_of_fields(fields);
    if (!time || *time <= after) continue;
    if (fits(days, local_fields(*time).tm_wday)) return fields;
  }
  return std::nullopt;
}

// The time that the text names, as calendar fields: the clock may skip this time.
std::optional<std::tm> fields_of(const std::string& text, WallTime after) {
  std::tm fields = local_fields(after);
  if (read_clock(text, fields)) {
    return next_day(fields, after, [](int, int) { return true; });
  }
  for (const char* format : {"%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M"}) {
    std::tm date{};
    const char* const end = ::strptime(text.c_str(), format, &date);
    if (end != nullptr && *end == '\0') return date;
  }
  const std::size_t space = text.find(' ');
  if (space == std::string::npos || !read_clock(text.substr(space + 1), fields))
    return std::nullopt;
  const std::string day = text.substr(0, space);
  if (day == "today" || day == "tomorrow") {
    const int wanted = day == "today" ? 0 : 1;
    return next_day(fields, after, [wanted](int days, int) { return days == wanted; });
  }
  const auto weekday = weekday_of(day);
  if (!weekday) return std::nullopt;
  return next_day(fields, after, [weekday](int, int wday) { return wday == *weekday; });
}

}  // namespace

Result<WallTime> parse_when(const char* option, const std::string& text, WallTime after) {
  if (text.starts_with("+")) {
    const auto later = parse_duration(text.substr(1));
    if (later) return after + *later;
    return fail(Code::kInvalid, fmt::format("{}: {}", option, later.error().message));
  }
  std::optional<WallTime> time = proto::parse_time(text);
  if (!time) {
    const auto fields = fields_of(text, after);
    if (!fields) {
      return fail(Code::kInvalid,
                  fmt::format("{}: '{}' is not a time to come: write 18:00, \"Mon 09:00\", "
                              "\"tomorrow 09:00\", \"2026-11-30 09:00\" or +2h",
                              option, display_text(text, 40)));
    }
    time = time_of_fields(*fields);
    const std::tm read = local_fields(time.value_or(after));
    if (!time || read.tm_hour != fields->tm_hour || read.tm_min != fields->tm_min) {
      return fail(Code::kInvalid, fmt::format("{}: there is no {} on that day, as the clock is set "
                                              "forward then: write another time",
                                              option, display_text(text, 40)));
    }
  }
  if (*time > after) return *time;
  return fail(Code::kInvalid,
              fmt::format("{}: {} is over: write a time after {}", option, display_text(text, 40),
                          local_time_text(after, after - std::chrono::hours(24 * 30))));
}

std::vector<WallTime> weekly(WallTime first, int count) {
  std::vector<WallTime> times;
  for (int week = 0; week < count; ++week) {
    std::tm fields = local_fields(first);
    fields.tm_mday += week * kDaysOfWeek;
    times.push_back(time_of_fields(fields).value_or(first + std::chrono::hours(24) * 7 * week));
  }
  return times;
}

std::string day_text(WallTime time) {
  const std::tm fields = local_fields(time);
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, "%a %e %b", &fields));
}

WallTime day_of(WallTime time, int days) {
  std::tm fields = local_fields(time);
  fields.tm_mday += days;
  fields.tm_hour = fields.tm_min = fields.tm_sec = 0;
  return time_of_fields(fields).value_or(time + std::chrono::hours(24) * days);
}

}  // namespace gpurota::cli
