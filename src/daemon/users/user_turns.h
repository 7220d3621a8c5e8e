// Turns of users where most is served the moment it comes: a few at a time of each user are, and of
// who sends more the rest waits in fair_turns.h. So a user who sends at full speed delays another
// by some of those and by one slice of turns, and who is alone, or sends little, pays nothing for
// that. Pure; state thread only.
#pragma once

#include "daemon/users/fair_turns.h"

namespace gpurota::daemon {

template <class Key>
class UserTurns {
 public:
  static constexpr int kAtOnce = 4;  // of a user, within kWindow
  static constexpr Duration kWindow = std::chrono::microseconds(200);
  // After one that took longer than its part of the window this many times as long nothing of its
  // user is served at once. Else each would begin a window of its own, as the one before is over
  // when it comes.
  static constexpr int kRest = 4;

  // Whether what comes from this user just now is served before those that wait; else it is to be
  // added.
  bool goes_first(uid_t user, TimePoint now) {
    if (windows_.size() > kMostIdle) {
      std::erase_if(windows_, [now](const auto& w) { return w.second.is_over(now); });
    }
    Window& window = windows_[user];
    if (window.is_over(now)) window = {now, now, 0};
    return now >= window.rests_until && ++window.count <= kAtOnce;
  }
  // The request that went first took from `begun` to `done`.
  void went_first(uid_t user, TimePoint begun, TimePoint done) {
    const Duration took = done - begun;
    if (took > kWindow / kAtOnce) windows_[user].rests_until = done + kRest * took;
  }

  void add(uid_t user, Key key) { waiting_.add(user, key); }
  void remove(uid_t user, Key key) { waiting_.remove(user, key); }
  auto next() { return waiting_.next(); }
  void charge(uid_t user, Duration took) { waiting_.charge(user, took); }
  bool empty() const { return waiting_.empty(); }

 private:
  static constexpr std::size_t kMostIdle = 64;
  struct Window {
    TimePoint begun{}, rests_until{};
    int count = 0;
    bool is_over(TimePoint now) const {
      return count == 0 || (now - begun >= kWindow && now >= rests_until);
    }
  };

  std::map<uid_t, Window> windows_;
  FairTurns<Key> waiting_;
};

}  // namespace gpurota::daemon
