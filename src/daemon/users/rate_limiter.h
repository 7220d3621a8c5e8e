// Limits repeated messages: in a window of time the first ones of a kind pass, the others are
// suppressed and counted, and their number is reported when the window is over. Pure bookkeeping;
// one thread at a time. Bounded for each user, so that a flood by one user neither affects others
// nor fills memory.
#pragma once

#include "base/ids.h"
#include "core/time.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace gpurota::daemon {

class RateLimiter {
 public:
  static constexpr Duration kWindow = std::chrono::seconds(10);
  static constexpr std::size_t kMostPerUser = 32;
  static constexpr std::size_t kMost = 4096;

  struct Key {
    uid_t uid = 0;
    std::string operation;
    std::string error_code;
    std::optional<LeaseId> lease;
    auto operator<=>(const Key&) const = default;
  };
  struct Suppressed {
    Key key;
    std::uint64_t count = 0;
  };

  // True: the message passes. False: `most` of its kind have passed in this window, and the message
  // is counted.
  bool admit(Key key, TimePoint now, std::uint64_t most = 1);
  // The counts of windows that are over. Each count is returned once.
  std::vector<Suppressed> take_counts(TimePoint now);
  // When the next window ends; nothing: there is no window.
  std::optional<TimePoint> next_end() const;

 private:
  struct Window {
    TimePoint begun{};
    std::uint64_t passed = 0;
    std::uint64_t suppressed = 0;
  };
  std::map<Key, Window> windows_;  // by user first
};

}  // namespace gpurota::daemon
