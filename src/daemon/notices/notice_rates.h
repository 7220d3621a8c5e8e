// How many notices leave the machine: of each kind so many an hour for each user, at first at once.
// Further notices are counted, and sent as one when there is room. Pure bookkeeping; state thread
// only.
//
// By kind, so that a flood of one (a program that is found again and again) does not keep back what
// matters (a lease that ends).
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
  // Users times kinds; of further users nothing is sent, which the caller counts.
  static constexpr std::size_t kMost = 4096;

  enum class Answer { kSend, kLater, kNever };
  Answer admit(const Notice& notice, TimePoint now, int most_per_hour);
  // Notices that were kept back and may be sent now: the last of each kind, with the number of all
  // in its text if they are several.
  std::vector<Notice> due(TimePoint now, int most_per_hour);
  // When there is more of it; nothing: nothing is kept back.
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
