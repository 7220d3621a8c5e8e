// Chooses the request that is served next, so that no user has more of the state thread's time than
// another user who wants it. The user who has had the least of that time is served first; of a
// user's requests, the one that waits longest. Fair queueing by measured time. Pure; state thread
// only.
//
// A user who begins to wait starts level with the least served waiting user, and so cannot save up
// time by pausing.
#pragma once

#include "core/time.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include <sys/types.h>

namespace gpurota::daemon {

template <class Key>
class FairQueue {
 public:
  struct Entry {
    uid_t user = 0;
    Key key{};
  };

  // Adds `key` behind the user's other waiting requests. The caller must not add a key that waits
  // already.
  void add(uid_t user, Key key) {
    User& waits = users_[user];
    if (waits.keys.empty()) waits.served = std::max(waits.served, floor_);
    waits.keys.push_back(key);
  }

  // Removes `key`, if it waits.
  void remove(uid_t user, Key key) {
    const auto found = users_.find(user);
    if (found != users_.end()) std::erase(found->second.keys, key);
  }

  // Removes and returns the next request; nothing if none waits.
  std::optional<Entry> next() {
    const auto least =
        std::min_element(users_.begin(), users_.end(), [](const auto& a, const auto& b) {
          if (a.second.keys.empty() != b.second.keys.empty()) return b.second.keys.empty();
          if (a.second.served != b.second.served) return a.second.served < b.second.served;
          return a.second.last_served < b.second.last_served;
        });
    if (least == users_.end() || least->second.keys.empty()) return std::nullopt;
    User& user = least->second;
    floor_ = user.served;
    user.last_served = ++served_;
    const Entry entry{least->first, user.keys.front()};
    user.keys.pop_front();
    return entry;
  }

  // Charges the time that serving the last entry took.
  void charge(uid_t user, Duration took) {
    users_[user].served += took;
    // An idle user who has had no more time than `floor_` starts at `floor_` anyway, and need not
    // be kept.
    if (users_.size() > kMostIdle) {
      std::erase_if(users_, [this](const auto& entry) {
        return entry.second.keys.empty() && entry.second.served <= floor_;
      });
    }
  }

  bool empty() const {
    return std::all_of(users_.begin(), users_.end(),
                       [](const auto& entry) { return entry.second.keys.empty(); });
  }

 private:
  static constexpr std::size_t kMostIdle = 64;
  struct User {
    Duration served{};
    std::uint64_t last_served = 0;
    std::deque<Key> keys;
  };

  std::map<uid_t, User> users_;
  Duration floor_{};  // the time that the last served user had had before
  std::uint64_t served_ = 0;
};

}  // namespace gpurota::daemon
