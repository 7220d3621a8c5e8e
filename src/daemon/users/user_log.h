// Limits the lines that users can make the daemon log: of one user's lines of a kind the first
// twenty in ten seconds are written, the others counted, and their number is written. Filters
// log::write for as long as it lives; there is one at a time. The filter runs on whatever thread
// logs.
#pragma once

#include "base/log.h"
#include "daemon/users/rate_limiter.h"

#include <functional>
#include <mutex>

namespace gpurota::daemon {

class UserLog {
 public:
  // Of a user's, and of those that name no user (`uid`), as what several did.
  static constexpr std::uint64_t kMostTold = 20;
  static constexpr std::uint64_t kMostToldOfNobody = 200;

  // `now` is asked on any thread.
  explicit UserLog(std::function<TimePoint()> now);
  ~UserLog();
  UserLog(const UserLog&) = delete;
  UserLog& operator=(const UserLog&) = delete;

  // Writes what was counted, once its time is up. Call now and then.
  void write_counts();

 private:
  bool is_written(std::string_view message, const log::Fields& fields);

  std::function<TimePoint()> now_;
  std::mutex mutex_;
  RateLimiter lines_;
  bool writing_counts_ = false;
};

}  // namespace gpurota::daemon
