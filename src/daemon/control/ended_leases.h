// How the most recent leases ended, for holders that were not connected when their lease ended (the
// daemon was restarting, or the connection had broken) and connect again later. State thread only;
// lost with the daemon. Bounded: when the list is full, a new entry replaces the oldest entry of
// the user with the most entries.
#pragma once

#include "base/ids.h"
#include "base/make_room.h"
#include "proto/methods.h"

#include <algorithm>
#include <deque>

namespace gpurota::daemon {

class EndedLeases {
 public:
  static constexpr std::size_t kMost = 256;

  void add(proto::Hold::Reply last_word) {
    if (last_words_.size() >= kMost) {
      const auto owner_of = [](const proto::Hold::Reply& each) { return each.lease.uid; };
      const auto who = who_makes_room(last_words_, owner_of, last_word.lease.uid);
      const auto oldest =
          std::find_if(last_words_.begin(), last_words_.end(),
                       [&](const proto::Hold::Reply& each) { return owner_of(each) == who; });
      if (oldest == last_words_.end()) return;
      last_words_.erase(oldest);
    }
    last_words_.push_back(std::move(last_word));
  }
  // Null: the lease has never existed, or ended too long ago.
  const proto::Hold::Reply* find(LeaseId id) const {
    for (const proto::Hold::Reply& each : last_words_) {
      if (each.lease.lease_id == id) return &each;
    }
    return nullptr;
  }

 private:
  std::deque<proto::Hold::Reply> last_words_;
};

}  // namespace gpurota::daemon
