#include "proto/text_forms.h"

#include <charconv>
#include <cstdint>
#include <cstdio>

namespace gpurota::proto {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::size_t kMaxLeaseDigits = 19;  // below 2^63, like every count in JSON

std::optional<int> digits(std::string_view text, std::size_t at, std::size_t count) {
  int value = 0;
  for (std::size_t i = at; i < at + count; ++i) {
    if (i >= text.size() || text[i] < '0' || text[i] > '9') return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

// ".125Z" or "Z" -> milliseconds.
std::optional<int> fraction(std::string_view rest) {
  if (rest == "Z") return 0;
  if (rest.size() < 3 || rest.front() != '.' || rest.back() != 'Z') return std::nullopt;
  int value = 0;
  for (std::size_t i = 1; i + 1 < rest.size(); ++i) {
    if (rest[i] < '0' || rest[i] > '9') return std::nullopt;
    if (i <= 3) value = value * 10 + (rest[i] - '0');
  }
  for (std::size_t have = rest.size() - 2; have < 3; ++have) value *= 10;
  return value;
}

std::optional<std::uint64_t> numbered(char letter, std::string_view text) {
  if (text.size() < 2 || text.size() > 1 + kMaxLeaseDigits || text[0] != letter || text[1] == '0') {
    return std::nullopt;
  }
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + 1, end, value);
  if (error != std::errc() || stop != end || value > INT64_MAX) return std::nullopt;
  return value;
}

}  // namespace

std::optional<LeaseId> parse_lease_id(std::string_view text) {
  const auto value = numbered('L', text);
  return value ? std::optional(LeaseId{*value}) : std::nullopt;
}

std::optional<RequestId> parse_request_id(std::string_view text) {
  const auto value = numbered('R', text);
  return value ? std::optional(RequestId{*value}) : std::nullopt;
}

std::string format_time(WallTime time) {
  const auto day = std::chrono::floor<days>(time);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss<milliseconds> clock{time - day};
  char text[64];
  std::snprintf(
      text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", static_cast<int>(date.year()),
      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
      static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
      static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return text;
}

std::optional<WallTime> parse_time(std::string_view text) {
  constexpr std::string_view kShape = "0000-00-00T00:00:00";
  if (text.size() <= kShape.size()) return std::nullopt;
  for (std::size_t i = 0; i < kShape.size(); ++i) {
    if (kShape[i] != '0' && kShape[i] != text[i]) return std::nullopt;
  }
  const auto year = digits(text, 0, 4), month = digits(text, 5, 2), day = digits(text, 8, 2);
  const auto hour = digits(text, 11, 2), minute = digits(text, 14, 2), second = digits(text, 17, 2);
  const auto milli = fraction(text.substr(kShape.size()));
  if (!year || !month || !day || !hour || !minute || !second || !milli) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  return WallTime(std::chrono::sys_days(date).time_since_epoch() + hours(*hour) + minutes(*minute) +
                  seconds(*second) + milliseconds(*milli));
}

}  // namespace gpurota::proto
