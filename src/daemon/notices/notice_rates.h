// Bounds how many notices leave the machine, by a token bucket for each kind and user. The bucket
// lets through the configured number an hour, even all at once. Further notices are counted, and
// sent as one notice when the bucket allows. Pure bookkeeping; state thread only.
//
// The bound is per kind, so that a flood of one kind (a program that is found repeatedly) does not
// keep back notices of a kind that matters (a lease that ends).
#pragma once

#include "base/token_bucket.h"
#include "core/time.h"
#include "daemon/notices/notice.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace gpurota::daemon {

class NoticeRates {
 public:
  // The largest number of pairs (user, kind) that are remembered. A notice of a further pair is not
  // sent (kNever).
  static constexpr std::size_t kMost = 4096;

  enum class Answer { kSend, kLater, kNever };
  Answer admit(const Notice& notice, TimePoint now, int most_per_hour);
  // Notices that were kept back and may be sent now: the last notice of each user and kind. If
  // several were kept back, the text of the last one has their number.
  std::vector<Notice> due(TimePoint now, int most_per_hour);
  // When due() will next return notices. Empty: nothing is kept back.
  std::optional<TimePoint> next_due(int most_per_hour) const;

 private:
  struct Entry {
    TokenBucket sent{};
    std::uint64_t kept_back = 0;
    Notice last{};
  };
  void forget_idle(TimePoint now, int most_per_hour);

  std::map<std::pair<uid_t, NoticeKind>, Entry> entries_;
};

}  // namespace gpurota::daemon
