// The sessions that began at this page, and how many calls each may make at the moment. A session
// that the daemon has ended may still be listed; a session not listed is refused without asking the
// daemon. One thread at a time.
//
// Bounded for each user and in total: a user who signs in repeatedly loses only their own sessions.
#pragma once

#include "base/token_bucket.h"

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace gpurota::web {

class KnownSessions {
 public:
  using Clock = std::chrono::steady_clock;
  // A session may make this many calls at once, and after these 20 each second.
  static constexpr int kCallsAtOnce = 60;
  static constexpr TokenRate kCalls{kCallsAtOnce, std::chrono::seconds(3)};
  // The daemon's limit for a user is half as much. Sessions that the daemon has ended are removed
  // first, because they are no longer used.
  static constexpr std::size_t kMostOfUser = 32;
  static constexpr std::size_t kMost = 4096;

  // Adds a session. When the table is full, removes the least recently used session of the user
  // with the most.
  void add(const std::string& token, uid_t uid, Clock::time_point now);
  void remove(std::string_view token);
  void clear() { sessions_.clear(); }

  bool has(std::string_view token) const { return sessions_.contains(token); }

  enum class Call { kUnknown, kTooFast, kTaken };
  // Counts a call of this session.
  Call take_call(std::string_view token, Clock::time_point now);
  std::size_t size() const { return sessions_.size(); }

 private:
  struct Session {
    uid_t uid = 0;
    Clock::time_point at{};  // time of its last call
    TokenBucket calls{};
  };
  void remove_oldest_of(uid_t uid);

  std::map<std::string, Session, std::less<>> sessions_;  // by token
};

}  // namespace gpurota::web
