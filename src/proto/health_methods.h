// How the daemon itself is, and what it has counted; see methods.h, which has its place among the
// others.
#pragma once

#include "proto/types.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::proto {

struct EventCount {
  EventType type = EventType::kUnknown;
  std::uint64_t count = 0;
  bool operator==(const EventCount&) const = default;
};

struct Waits {
  std::vector<std::int64_t> bounds_seconds;
  std::vector<std::uint64_t> counts;
  std::int64_t seconds = 0;
  bool operator==(const Waits&) const = default;
};

struct Health {
  static constexpr std::string_view kMethod = "dev.gpurota.Health";
  struct Reply {
    WallTime since;
    std::optional<std::string> driver_error;
    std::optional<std::string> store_error;
    std::vector<EventCount> events;
    Waits waits;
    Bytes recovered_bytes;
    // Microseconds. Empty: an older daemon.
    std::optional<std::int64_t> loop_longest_us;
    std::optional<std::int64_t> loop_longest_minute_us;
    bool operator==(const Reply&) const = default;
  };
  bool operator==(const Health&) const = default;
};

}  // namespace gpurota::proto
