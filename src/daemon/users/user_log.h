// Limits the lines that users can make the daemon log: of each kind, the first twenty lines of a
// user in ten seconds are written, and the number of all further ones is logged. A UserLog filters
// log::write as long as it lives; there is at most one at a time. The filter runs on whatever
// thread logs.
#pragma once

#include "base/log.h"
#include "daemon/users/rate_limiter.h"

#include <functional>
#include <mutex>

namespace gpurota::daemon {

class UserLog {
 public:
  // The most lines of one user; and the most lines without a user (`uid`), to which several users
  // may contribute.
  static constexpr std::uint64_t kMostTold = 20;
  static constexpr std::uint64_t kMostToldOfNobody = 200;

  // `now` may be called on any thread.
  explicit UserLog(std::function<TimePoint()> now);
  ~UserLog();
  UserLog(const UserLog&) = delete;
  UserLog& operator=(const UserLog&) = delete;

  // Logs the numbers of suppressed lines whose ten seconds are over. Call now and then.
  void write_counts();

 private:
  bool is_written(std::string_view message, const log::Fields& fields);

  std::function<TimePoint()> now_;
  std::mutex mutex_;
  RateLimiter lines_;
  bool writing_counts_ = false;
};

}  // namespace gpurota::daemon
