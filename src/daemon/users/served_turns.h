// Serves users in turns, a slice of the state thread's time at a stretch; then the loop looks after
// everything else, and comes back for as long as somebody waits. Both servers of the daemon have
// one. State thread only.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "base/steps.h"
#include "core/time.h"
#include "ports/event_loop.h"

#include <functional>
#include <utility>

#include <sys/types.h>

namespace gpurota::daemon {

// Calls back from the loop, among the clients, while it is raised.
class WakeUp {
 public:
  Result<void> start(ports::EventLoop& loop, std::function<void()> callback);
  void raise();
  void lower();

 private:
  Fd event_;
  ports::EventLoop::SourcePtr source_;
};

template <class Key>
class TurnClient {
 public:
  virtual ~TurnClient() = default;
  virtual void serve(const Key& key) = 0;
  // The time of the turn is charged: `key` may wait again, or be gone.
  virtual void after_turn(const Key&) {}
};

// `Turns`: FairTurns<Key> or UserTurns<Key>, which says whose turn is next.
template <class Key, class Turns>
class ServedTurns {
 public:
  // Both outlive it.
  ServedTurns(ports::EventLoop& loop, TurnClient<Key>& client) : loop_(loop), client_(client) {}

  // Before the first add().
  Result<void> start() {
    return wake_.start(loop_, [this] { serve(); });
  }
  // `key` waits, behind what else waits of this user. The caller sees to it that it waits once.
  void add(uid_t user, const Key& key) {
    if (turns_.empty()) wake_.raise();
    turns_.add(user, key);
  }
  void remove(uid_t user, const Key& key) { turns_.remove(user, key); }
  Turns& turns() { return turns_; }

 private:
  // So long, or so many, are served at once.
  static constexpr Duration kSlice = std::chrono::microseconds(500);
  static constexpr int kMostInASlice = 64;

  void serve() {
    const TimePoint begun = loop_.now();
    TimePoint at = begun;
    for (int served = 0; served < kMostInASlice && at - begun < kSlice; ++served) {
      const auto turn = turns_.next();
      if (!turn) break;
      steps::begin();
      client_.serve(turn->key);
      steps::end();
      const TimePoint done = loop_.now();
      turns_.charge(turn->user, done - at);
      at = done;
      client_.after_turn(turn->key);
    }
    if (turns_.empty()) wake_.lower();
  }

  ports::EventLoop& loop_;
  TurnClient<Key>& client_;
  Turns turns_;
  WakeUp wake_;
};

}  // namespace gpurota::daemon
