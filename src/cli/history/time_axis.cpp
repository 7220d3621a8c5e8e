#include "cli/history/time_axis.h"

#include "base/text.h"
#include "cli/args/since.h"
#include "core/local_time.h"

#include <algorithm>
#include <array>
#include <chrono>

namespace gpurota::cli {
namespace {

using std::chrono::seconds;

constexpr std::int64_t kMinute = 60, kHour = 3600, kDay = 86400;
constexpr auto kRoundSteps = std::to_array<std::int64_t>(
    {1,        2,           5,           10,           15,           30,
     kMinute,  2 * kMinute, 5 * kMinute, 10 * kMinute, 15 * kMinute, 30 * kMinute,
     kHour,    2 * kHour,   3 * kHour,   6 * kHour,    12 * kHour,   kDay,
     2 * kDay, 7 * kDay,    14 * kDay,   30 * kDay});
constexpr std::size_t kBetweenLabels = 2;  // columns, at least

const char* format_of(std::int64_t step, std::int64_t span) {
  if (step >= kDay) return "%b %e";
  if (span > kDay) return "%b %e %H:%M";
  return step >= kMinute ? "%H:%M" : "%H:%M:%S";
}

// Seconds between two ticks.
std::int64_t step_of(WallTime since, std::int64_t span, std::size_t columns) {
  const auto fits = [&](std::int64_t step) {
    const std::size_t wide = display_width(local_time(since, format_of(step, span)));
    return step * static_cast<std::int64_t>(columns) >=
           span * static_cast<std::int64_t>(wide + kBetweenLabels);
  };
  for (const std::int64_t step : kRoundSteps) {
    if (fits(step)) return step;
  }
  std::int64_t step = kRoundSteps.back();
  while (step < span && !fits(step)) step *= 2;
  return step;
}

}  // namespace

std::vector<TimeTick> time_ticks(WallTime since, WallTime until, std::size_t columns) {
  std::vector<TimeTick> ticks;
  const auto begin = std::chrono::duration_cast<seconds>(since.time_since_epoch()).count();
  const auto end = std::chrono::duration_cast<seconds>(until.time_since_epoch()).count();
  const std::int64_t span = end - begin;
  if (span <= 0 || columns == 0) return ticks;
  const std::int64_t step = step_of(since, span, columns);
  // Rounds in local time.
  const std::int64_t offset = local_fields(since).tm_gmtoff;
  const std::int64_t first = (begin + offset + step - 1) / step * step - offset;
  for (std::int64_t at = first; at < end; at += step) {
    TimeTick tick{
        static_cast<std::size_t>((at - begin) * static_cast<std::int64_t>(columns) / span),
        local_time(WallTime(seconds(at)), format_of(step, span))};
    if (tick.column + display_width(tick.label) > columns) tick.label.clear();
    ticks.push_back(std::move(tick));
  }
  return ticks;
}

}  // namespace gpurota::cli
