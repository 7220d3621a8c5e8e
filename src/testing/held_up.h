// Blocks work on other threads until the test releases it. Each piece of work has a key, such as a
// process or a user. Any thread.
#pragma once

#include <condition_variable>
#include <mutex>
#include <set>

namespace gpurota::testing {

template <class Key>
class HeldUp {
 public:
  // Returns once the key is not stuck. Call it with `lock` holding mutex().
  void wait(std::unique_lock<std::mutex>& lock, Key key) {
    changed_.wait(lock, [&] { return !stuck_.contains(key); });
  }
  void set_stuck(Key key, bool is_stuck) {
    const std::lock_guard lock(mutex_);
    is_stuck ? void(stuck_.insert(key)) : void(stuck_.erase(key));
    changed_.notify_all();
  }
  // Call it at the end of a test: otherwise destroying the worker would wait for blocked work.
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
