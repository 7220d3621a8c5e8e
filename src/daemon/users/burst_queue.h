// A fair queue that lets bursts pass: a few requests of each user at a time are served when they
// arrive. If a user sends more, the further requests wait in a FairQueue. A user who sends at full
// speed thus delays another user by a few requests and one slice of the dispatcher. The
// rule costs a user nothing who is alone, or sends little. Pure; state thread only.
#pragma once

#include "daemon/users/fair_queue.h"

namespace gpurota::daemon {

template <class Key>
class BurstQueue {
 public:
  static constexpr int kAtOnce = 4;  // of a user, within kWindow
  static constexpr Duration kWindow = std::chrono::microseconds(200);
  // After a request that took longer than its part of the window, no request of its user is served
  // at once for kPenalty times the time that it took. Otherwise the window would be over after such
  // a request, and the next request would begin a new window.
  static constexpr int kPenalty = 4;

  // Whether the request that has just arrived from this user is served before requests that wait.
  // False: the caller calls add().
  bool admit_at_once(uid_t user, TimePoint now) {
    if (windows_.size() > kMostIdle) {
      std::erase_if(windows_, [now](const auto& w) { return w.second.is_over(now); });
    }
    Window& window = windows_[user];
    if (window.is_over(now)) window = {now, now, 0};
    return now >= window.barred_until && ++window.count <= kAtOnce;
  }
  // The request that was admitted took from `begun` to `done`.
  void charge_at_once(uid_t user, TimePoint begun, TimePoint done) {
    const Duration took = done - begun;
    if (took > kWindow / kAtOnce) windows_[user].barred_until = done + kPenalty * took;
  }

  void add(uid_t user, Key key) { waiting_.add(user, key); }
  void remove(uid_t user, Key key) { waiting_.remove(user, key); }
  auto next() { return waiting_.next(); }
  void charge(uid_t user, Duration took) { waiting_.charge(user, took); }
  bool empty() const { return waiting_.empty(); }

 private:
  static constexpr std::size_t kMostIdle = 64;
  struct Window {
    TimePoint begun{}, barred_until{};
    int count = 0;
    bool is_over(TimePoint now) const {
      return count == 0 || (now - begun >= kWindow && now >= barred_until);
    }
  };

  std::map<uid_t, Window> windows_;
  FairQueue<Key> waiting_;
};

}  // namespace gpurota::daemon
