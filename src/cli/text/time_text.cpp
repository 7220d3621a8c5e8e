#include "cli/text/time_text.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>

namespace gpurota::cli {
namespace {

constexpr double kMostSeconds = 10.0 * 366 * 86400;

std::tm broken_down(WallTime time) {
  const std::time_t seconds =
      std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
  std::tm local{};
  (void)::localtime_r(&seconds, &local);
  return local;
}

}  // namespace

Result<std::chrono::seconds> parse_duration(std::string_view text) {
  const auto wrong = [&] {
    return fail(Code::kInvalid, fmt::format("'{}' is not a time: write 30s, 10m, 2h, 1d or 1h30m",
                                            display_text(text, 40)));
  };
  double sum = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    double number = 0;
    const char* const end = rest.data() + rest.size();
    const auto [stop, error] = std::from_chars(rest.data(), end, number, std::chars_format::fixed);
    if (error != std::errc() || stop == end || rest.front() == '-') return wrong();
    const double scale = *stop == 's'   ? 1
                         : *stop == 'm' ? 60
                         : *stop == 'h' ? 3600
                         : *stop == 'd' ? 86400
                                        : 0;
    if (scale == 0) return wrong();
    sum += number * scale;
    rest.remove_prefix(static_cast<std::size_t>(stop - rest.data()) + 1);
  }
  if (sum > kMostSeconds) {
    return fail(Code::kInvalid, fmt::format("'{}' is more than {} days", display_text(text, 40),
                                            static_cast<std::int64_t>(kMostSeconds) / 86400));
  }
  if (!(sum >= 1)) return wrong();
  return std::chrono::seconds(static_cast<std::int64_t>(sum));
}

std::string duration_text(std::chrono::seconds duration) {
  const std::int64_t all = duration.count();
  std::string text;
  const auto add = [&](std::int64_t count, const char* unit) {
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : " ", count, unit);
  };
  add(all / 86400, "d");
  add(all / 3600 % 24, "h");
  add(all / 60 % 60, "min");
  if (all < 600) add(all % 60, "s");
  return text.empty() ? "0 s" : text;
}

std::string span_text(WallTime::duration span) {
  const auto seconds =
      std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(span).count());
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m", seconds / 60);
  if (seconds < 86400) return fmt::format("{}h{:02}m", seconds / 3600, seconds / 60 % 60);
  return fmt::format("{}d{:02}h", seconds / 86400, seconds / 3600 % 24);
}

std::string clock_text(WallTime time, WallTime now) {
  const std::tm then = broken_down(time), today = broken_down(now);
  const bool same_day = then.tm_year == today.tm_year && then.tm_yday == today.tm_yday;
  char text[64];
  const std::size_t size =
      std::strftime(text, sizeof text, same_day ? "%H:%M" : "%b %e %H:%M", &then);
  return std::string(text, size);
}

}  // namespace gpurota::cli
