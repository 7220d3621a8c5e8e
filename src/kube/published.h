// A value that one thread publishes and any number of threads wait for. Each sees the newest value,
// and none misses a change. State, not events: a late or slow thread sees only the current value.
// Any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace gpurota::kube {

template <class Value>
class Published {
 public:
  struct Seen {
    std::uint64_t version = 0;  // 0: nothing published yet
    std::shared_ptr<const Value> value;
    std::chrono::steady_clock::time_point said{};  // last publication, changed or not
  };

  // Publishing the same value again is no change.
  void publish(Value value) {
    const std::lock_guard lock(mutex_);
    seen_.said = std::chrono::steady_clock::now();
    if (seen_.value && *seen_.value == value) return;
    seen_ = {seen_.version + 1, std::make_shared<const Value>(std::move(value)), seen_.said};
    changed_.notify_all();
  }
  Seen now() const {
    const std::lock_guard lock(mutex_);
    return seen_;
  }
  // Returns as soon as the version differs from `version`, or when the time is over.
  Seen wait(std::uint64_t version, std::chrono::milliseconds patience) const {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [&] { return seen_.version != version; });
    return seen_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  Seen seen_;  // guarded by mutex_
};

}  // namespace gpurota::kube
