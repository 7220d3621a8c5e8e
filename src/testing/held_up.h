// Work on other threads that is held up until the test lets it go, by a key: a process, a user. Any
// thread.
#pragma once

#include <condition_variable>
#include <mutex>
#include <set>

namespace gpurota::testing {

template <class Key>
class HeldUp {
 public:
  // With `lock` on mutex(): returns once the key is not held up.
  void wait(std::unique_lock<std::mutex>& lock, Key key) {
    changed_.wait(lock, [&] { return !stuck_.contains(key); });
  }
  void set_stuck(Key key, bool is_stuck) {
    const std::lock_guard lock(mutex_);
    is_stuck ? void(stuck_.insert(key)) : void(stuck_.erase(key));
    changed_.notify_all();
  }
  // At the end of a test: else whoever waits would be waited for.
  void let_all_go() {
    const std::lock_guard lock(mutex_);
    stuck_.clear();
    changed_.notify_all();
  }
  std::mutex& mutex() { return mutex_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<Key> stuck_;
};

}  // namespace gpurota::testing
