// Counts how a lease's work on its GPU fared in the last minute. Pure.
#pragma once

#include "core/lease.h"
#include "core/time.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>

namespace gpurota::daemon {

inline constexpr std::chrono::seconds kMinute{60};

// A sum of time over the last minute, in pieces of a second.
class MinuteSum {
 public:
  void add(Duration time, TimePoint now) {
    const std::int64_t second = second_of(now);
    Piece& piece = pieces_[static_cast<std::size_t>(second) % pieces_.size()];
    if (piece.second != second) piece = {second, {}};
    piece.sum += time;
  }
  Duration sum(TimePoint now) const {
    Duration all{};
    for (const Piece& piece : pieces_) {
      if (piece.second > second_of(now) - kMinute.count()) all += piece.sum;
    }
    return all;
  }

 private:
  struct Piece {
    std::int64_t second = -kMinute.count();
    Duration sum{};
  };
  static std::int64_t second_of(TimePoint when) {
    return std::chrono::floor<std::chrono::seconds>(when.time_since_epoch()).count();
  }

  std::array<Piece, kMinute.count()> pieces_{};
};

// The last minute of a lease, as far as it is known. No time is above `known`.
struct LastMinute {
  Duration known{};  // how much of the minute
  Duration held{};   // for which work of the lease was held back
  // For which leases it was held back. Time in which work waited for several leases counts for each
  // of them.
  std::map<LeaseId, Duration> held_for;
  // The time of its GPU that the lease got; empty: the GPU's time is not divided.
  std::optional<Duration> got;
  // For which its work waited because of its upper bound; empty: it has none.
  std::optional<Duration> bounded;

  bool operator==(const LastMinute&) const = default;
};

// Counts for how long work of a lease is held back, and for which leases.
class HeldCount {
 public:
  explicit HeldCount(TimePoint since) : since_(since) {}

  void add(Duration time, TimePoint now) { all_.add(time, now); }
  void add_for(LeaseId lease, Duration time, TimePoint now) { for_[lease].add(time, now); }
  LastMinute last_minute(TimePoint now) const {
    LastMinute minute;
    minute.known = std::clamp<Duration>(now - since_, Duration(), kMinute);
    minute.held = std::min(all_.sum(now), minute.known);
    for (const auto& [lease, sum] : for_) {
      const Duration time = std::min(sum.sum(now), minute.known);
      if (time > Duration()) minute.held_for[lease] = time;
    }
    return minute;
  }
  // Forgets leases for which nothing was held back in the last minute.
  void tidy(TimePoint now) {
    std::erase_if(for_, [now](const auto& each) { return each.second.sum(now) == Duration(); });
  }

 private:
  TimePoint since_;
  MinuteSum all_;
  std::map<LeaseId, MinuteSum> for_;
};

}  // namespace gpurota::daemon
