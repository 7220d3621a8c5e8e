// Serves the requests of a queue in slices of the state thread's time. After each slice the event
// loop handles everything else. The next slice follows while a request waits. Both servers of the
// daemon have a dispatcher. State thread only.
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

// While raised, calls back from the loop with the urgency of clients.
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
class DispatchClient {
 public:
  virtual ~DispatchClient() = default;
  virtual void serve(const Key& key) = 0;
  // Called when the time of serving `key` has been charged; `key` may then be added again, or be
  // gone.
  virtual void on_charged(const Key&) {}
};

// `Queue`: FairQueue<Key> or BurstQueue<Key>, which chooses the next request.
template <class Key, class Queue>
class Dispatcher {
 public:
  // Both must outlive the Dispatcher.
  Dispatcher(ports::EventLoop& loop, DispatchClient<Key>& client) : loop_(loop), client_(client) {}

  // Call before the first add().
  Result<void> start() {
    return wake_.start(loop_, [this] { serve(); });
  }
  // Adds `key` behind the user's other waiting requests. The caller must not add a key that waits
  // already.
  void add(uid_t user, const Key& key) {
    if (queue_.empty()) wake_.raise();
    queue_.add(user, key);
  }
  void remove(uid_t user, const Key& key) { queue_.remove(user, key); }
  Queue& queue() { return queue_; }

 private:
  // A slice ends after this time, or this many requests.
  static constexpr Duration kSlice = std::chrono::microseconds(500);
  static constexpr int kMostInASlice = 64;

  void serve() {
    const TimePoint begun = loop_.now();
    TimePoint at = begun;
    for (int served = 0; served < kMostInASlice && at - begun < kSlice; ++served) {
      const auto entry = queue_.next();
      if (!entry) break;
      steps::begin();
      client_.serve(entry->key);
      steps::end();
      const TimePoint done = loop_.now();
      queue_.charge(entry->user, done - at);
      at = done;
      client_.on_charged(entry->key);
    }
    if (queue_.empty()) wake_.lower();
  }

  ports::EventLoop& loop_;
  DispatchClient<Key>& client_;
  Queue queue_;
  WakeUp wake_;
};

}  // namespace gpurota::daemon
