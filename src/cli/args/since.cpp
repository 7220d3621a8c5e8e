#include "cli/args/since.h"

#include "base/text.h"
#include "proto/text_forms.h"

#include <fmt/format.h>

#include <charconv>
#include <ctime>

namespace gpurota::cli {
namespace {

std::optional<WallTime> ago(std::string_view text, WallTime now) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const std::int64_t seconds = unit == "s"   ? 1
                               : unit == "m" ? 60
                               : unit == "h" ? 3600
                               : unit == "d" ? 86400
                                             : 0;
  // A hundred years are the maximum.
  if (error != std::errc() || seconds == 0 || number < 0 || number > 3'200'000'000 / seconds) {
    return std::nullopt;
  }
  return now - std::chrono::seconds(number * seconds);
}

std::optional<WallTime> local(const std::string& text) {
  for (const char* format : {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M"}) {
    std::tm time{};
    const char* end = ::strptime(text.c_str(), format, &time);
    if (end == nullptr || *end != '\0') continue;
    time.tm_isdst = -1;
    const std::time_t seconds = std::mktime(&time);
    if (seconds == -1) return std::nullopt;
    return WallTime(std::chrono::seconds(seconds));
  }
  return std::nullopt;
}

}  // namespace

Result<WallTime> parse_since(std::string_view option, const std::string& text, WallTime now) {
  std::optional<WallTime> time = ago(text, now);
  if (!time) time = proto::parse_time(text);
  if (!time) time = local(text);
  if (time && *time > now) {
    return fail(Code::kInvalid,
                fmt::format("{}: {} is in the future, it is {} now: write a time in the past",
                            option, display_text(text, 40), local_time(now, "%F %H:%M %Z")));
  }
  if (time) return *time;
  return fail(Code::kInvalid, fmt::format("{}: '{}' is not a time: write 30m, 2h or 7d (ago), or "
                                          "2026-11-21, or \"2026-11-21 14:05\"",
                                          option, display_text(text, 40)));
}

std::string local_time(WallTime time, const char* format) {
  const std::time_t seconds =
      std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
  std::tm local{};
  (void)::localtime_r(&seconds, &local);
  char text[64];
  return std::string(text, std::strftime(text, sizeof text, format, &local));
}

}  // namespace gpurota::cli
