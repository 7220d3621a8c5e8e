#include "core/local_time.h"

namespace gpurota {
namespace {

constexpr std::size_t kLongestTimeText = 64;

}  // namespace

std::tm local_fields(WallTime time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm fields{};
  (void)::localtime_r(&seconds, &fields);
  return fields;
}

std::string local_time_text(WallTime time, WallTime now) {
  const std::tm at = local_fields(time), today = local_fields(now);
  const bool same_day = at.tm_year == today.tm_year && at.tm_yday == today.tm_yday;
  const bool this_week = time > now && time - now < std::chrono::hours(6 * 24);
  const char* const format = same_day ? "%H:%M" : this_week ? "%a %H:%M" : "%a %e %b %H:%M";
  char text[kLongestTimeText];
  return std::string(text, std::strftime(text, sizeof text, format, &at));
}

}  // namespace gpurota
