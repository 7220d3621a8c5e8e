// Tells the threads of burn to stop, and wakes those that sleep.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace gpurota::burn {

class StopFlag {
 public:
  void set() {
    const std::lock_guard lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  bool is_set() const {
    const std::lock_guard lock(mutex_);
    return set_;
  }
  // Sleeps for `time`, or until the flag is set.
  void wait_for(std::chrono::milliseconds time) const {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, time, [this] { return set_; });
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool set_ = false;
};

}  // namespace gpurota::burn
