// The sessions that have begun at this page, and how many calls each may make just now. A session
// that the daemon has ended may still be here; one that is not here is asked about nowhere. Not for
// several threads at a time.
//
// Bounded for each user and in all: whoever signs in again and again loses sessions of their own.
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
  // So many calls at once, and then 20 each second.
  static constexpr int kCallsAtOnce = 60;
  static constexpr TokenRate kCalls{kCallsAtOnce, std::chrono::seconds(3)};
  // The daemon has half as many of a user: those it has ended go first, as they are not used any
  // more.
  static constexpr std::size_t kMostOfUser = 32;
  static constexpr std::size_t kMost = 4096;

  // When it is full, that session of whoever has most goes which was used longest ago.
  void add(const std::string& token, uid_t uid, Clock::time_point now);
  void remove(std::string_view token);
  void clear() { sessions_.clear(); }

  bool has(std::string_view token) const { return sessions_.contains(token); }

  enum class Call { kUnknown, kTooFast, kTaken };
  // A call of this session, now.
  Call take_call(std::string_view token, Clock::time_point now);
  std::size_t size() const { return sessions_.size(); }

 private:
  struct Session {
    uid_t uid = 0;
    Clock::time_point at{};  // its last call
    TokenBucket calls{};
  };
  void remove_oldest_of(uid_t uid);

  std::map<std::string, Session, std::less<>> sessions_;  // by token
};

}  // namespace gpurota::web
