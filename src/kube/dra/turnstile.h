// One at a time for each name: what is done for a claim is not done twice at once. Any thread.
#pragma once

#include "base/result.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace gpurota::kube {

class Turnstile {
 public:
  class Pass {
   public:
    Pass(Turnstile& turnstile, std::string name) : turnstile_(&turnstile), name_(std::move(name)) {}
    ~Pass() { turnstile_->leave(name_); }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

   private:
    Turnstile* turnstile_;
    const std::string name_;
  };

  // Null: others did not leave in time.
  std::unique_ptr<Pass> enter(const std::string& name,
                              std::chrono::steady_clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    const bool free = left_.wait_until(lock, deadline, [&] { return !inside_.contains(name); });
    if (!free) return nullptr;
    inside_.insert(name);
    return std::make_unique<Pass>(*this, name);
  }

 private:
  void leave(const std::string& name) {
    const std::lock_guard lock(mutex_);
    inside_.erase(name);
    left_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable left_;
  std::set<std::string> inside_;  // guarded by mutex_
};

}  // namespace gpurota::kube
