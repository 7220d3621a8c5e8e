#include "sys/round_times.h"

#include <algorithm>

namespace gpurota::sys {

void RoundTimes::note(TimePoint begun, TimePoint ended) {
  const Duration took = ended - begun;
  longest_ = std::max(longest_, took);
  const std::int64_t number = ended.time_since_epoch() / kSlice;
  Slice& slice = slices_[static_cast<std::size_t>(number % kSlices)];
  if (slice.number != number) slice = {number, {}};
  slice.longest = std::max(slice.longest, took);
}

LongestRounds RoundTimes::longest(TimePoint now) const {
  LongestRounds longest{longest_, {}};
  const std::int64_t number = now.time_since_epoch() / kSlice;
  for (const Slice& slice : slices_) {
    if (slice.number < 0 || number - slice.number >= kSlices) continue;
    longest.last_minute = std::max(longest.last_minute, slice.longest);
  }
  return longest;
}

}  // namespace gpurota::sys
