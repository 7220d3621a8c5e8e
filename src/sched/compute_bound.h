// An upper bound of the compute time that one party has of a GPU. Time is saved up while the party
// has no work, and used while it has. If the saved time is used up, the party has to wait until a
// piece of time that is worth while is saved. Work that took longer than what was saved is owed, so
// the party has to wait for longer after it.
//
// Pure: the same calls at the same times give the same answers.
#pragma once

#include "core/time.h"

#include <algorithm>
#include <chrono>

namespace gpurota::sched {

class ComputeBound {
 public:
  // The most that is saved up, the least that is worth while, and the most that is owed.
  static constexpr Duration kMostSaved = std::chrono::milliseconds(50);
  static constexpr Duration kLeast = std::chrono::milliseconds(5);
  static constexpr Duration kMostOwed = std::chrono::seconds(2);

  // 0: there is no bound. Saved and owed time stays.
  void set(int percent) { percent_ = percent; }
  bool is_set() const { return percent_ != 0; }
  // So much time has passed.
  void pass(Duration time) { save(time * percent_ / 100); }
  // The party had the GPU for so long.
  void charge(Duration time) { save(-time); }
  // Whether the party has to wait.
  bool is_reached() const { return is_set() && reached_; }
  // When that changes if the party works from now on, or does not if it has to wait.
  Duration left() const {
    if (!is_set()) return Duration::max();
    return reached_ ? (kLeast - saved_) * 100 / percent_ : saved_;
  }

 private:
  void save(Duration time) {
    saved_ = std::clamp(saved_ + time, -kMostOwed, kMostSaved);
    if (saved_ <= Duration()) reached_ = true;
    if (saved_ >= kLeast) reached_ = false;
  }

  int percent_ = 0;
  Duration saved_ = kMostSaved;
  bool reached_ = false;
};

}  // namespace gpurota::sched
