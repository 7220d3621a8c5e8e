// A lock for each name, so that two threads never work on one claim at the same time. Any thread.
#pragma once

#include "base/result.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace gpurota::kube {

class NamedLocks {
 public:
  class Held {
   public:
    Held(NamedLocks& locks, std::string name) : locks_(&locks), name_(std::move(name)) {}
    ~Held() { locks_->unlock(name_); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

   private:
    NamedLocks* locks_;
    const std::string name_;
  };

  // Null: another thread still holds the lock at the deadline.
  std::unique_ptr<Held> lock(const std::string& name,
                             std::chrono::steady_clock::time_point deadline) {
    std::unique_lock guard(mutex_);
    const bool free = released_.wait_until(guard, deadline, [&] { return !held_.contains(name); });
    if (!free) return nullptr;
    held_.insert(name);
    return std::make_unique<Held>(*this, name);
  }

 private:
  void unlock(const std::string& name) {
    const std::lock_guard guard(mutex_);
    held_.erase(name);
    released_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable released_;
  std::set<std::string> held_;  // guarded by mutex_
};

}  // namespace gpurota::kube
