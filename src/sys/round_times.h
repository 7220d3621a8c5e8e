// How long the rounds of the event loop take: how long one callback, or one batch of them, kept all
// others waiting. Pure; the loop's thread.
#pragma once

#include "core/time.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace gpurota::sys {

struct LongestRounds {
  Duration since_start{};
  Duration last_minute{};  // of rounds that ended in the last 60 to 70 seconds
};

class RoundTimes {
 public:
  void note(TimePoint begun, TimePoint ended);
  LongestRounds longest(TimePoint now) const;

 private:
  struct Slice {
    std::int64_t number = -1;  // counts kSlice since the clock's epoch
    Duration longest{};
  };
  static constexpr Duration kSlice = std::chrono::seconds(10);
  static constexpr std::int64_t kSlices = 7;

  std::array<Slice, kSlices> slices_{};  // slice N at N % kSlices
  Duration longest_{};
};

}  // namespace gpurota::sys
