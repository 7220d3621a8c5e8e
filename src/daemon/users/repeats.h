// Limits repeated messages: the first ones of a kind are passed as they come, the others are
// counted, and the number is reported when their window is over. Pure bookkeeping; one thread at a
// time. Bounded for each user, so that nobody's flood costs others or memory.
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

class Repeats {
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
  struct Repeated {
    Key key;
    std::uint64_t count = 0;
  };

  // True: tell it. False: `most` of its kind have been told in this window, and it is counted.
  bool is_told(Key key, TimePoint now, std::uint64_t most = 1);
  // The numbers of windows that are over.
  std::vector<Repeated> due(TimePoint now);
  // When the next window is over; nothing: there is none.
  std::optional<TimePoint> next_due() const;

 private:
  struct Window {
    TimePoint begun{};
    std::uint64_t told = 0;
    std::uint64_t more = 0;
  };
  std::map<Key, Window> windows_;  // by user first
};

}  // namespace gpurota::daemon
