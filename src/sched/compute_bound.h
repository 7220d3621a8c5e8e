// An upper bound of the compute time that one party has of a GPU. Time is saved up while the party
// has no work, and used while it has. If the saved time is used up, the party has to wait until a
// piece of time that is worth while is saved. Work that took longer than what was saved is owed, so
// the party has to wait for longer after it.
//
// Work can need a submission that waits for this bound, for example if a stream waits for the host.
// A party whose work does not end while it waits is therefore charged only after that end, and
// after kMostHeld its submissions pass once. If the work ends only then, the time between is not
// charged.
//
// Pure: the same calls at the same times give the same answers.
#pragma once

#include "core/time.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace gpurota::sched {

class ComputeBound {
 public:
  // The most that is saved up, the least that is worth while, and the most that is owed.
  static constexpr Duration kMostSaved = std::chrono::milliseconds(50);
  static constexpr Duration kLeast = std::chrono::milliseconds(5);
  static constexpr Duration kMostOwed = std::chrono::seconds(2);
  // From when on a party that waits is charged only when its work has ended, when its submissions
  // pass at the latest although the bound is reached, and for how long they pass.
  static constexpr Duration kSoon = std::chrono::milliseconds(30);
  static constexpr Duration kMostHeld = std::chrono::seconds(1);
  static constexpr Duration kPassing = std::chrono::milliseconds(20);

  // 0: there is no bound. A party that gets its first bound owes nothing.
  void set(int percent) {
    if (percent_ == 0) *this = ComputeBound();
    percent_ = percent;
  }
  bool is_set() const { return percent_ != 0; }
  // So much time has passed.
  void pass(Duration time) { add(time * percent_ / 100); }
  // The party had the GPU for so long.
  void charge(Duration time) { add(-time); }
  // Notes whether the party has work now, and whether one of its submissions waits.
  void note(TimePoint now, bool busy, bool waits) {
    if (!busy || !is_reached()) return settle();
    if (!held_since_) {
      if (!waits) return;
      held_since_ = now;
    }
    const Duration held = now - *held_since_;
    if (held >= kSoon) later_ = true;
    if (passes_ && (!waits || held >= kMostHeld + kPassing)) {
      held_since_ = now;
      passes_ = false;
      return;
    }
    passes_ = waits && held >= kMostHeld;
    passed_ |= passes_;
  }
  // Charges what was to be charged later.
  void settle() {
    later_ = passes_ = false;
    held_since_.reset();
    const Duration unsettled = std::exchange(unsettled_, Duration());
    if (!std::exchange(passed_, false)) add(unsettled);
  }
  // Whether the party has to wait.
  bool is_reached() const { return is_set() && reached_; }
  // Whether submissions pass although the bound is reached.
  bool lets_pass() const { return passes_; }
  // Whether the party owes nothing and has saved up all that it can.
  bool is_full() const { return saved_ == kMostSaved; }
  // When is_reached() changes if the party works from now on, or does not if it has to wait.
  Duration left() const {
    if (!is_set()) return Duration::max();
    if (held_since_) return kPassing;
    return reached_ ? (kLeast - saved_) * 100 / percent_ : saved_;
  }

 private:
  void add(Duration time) {
    if (!is_set()) return;
    if (later_) {
      unsettled_ += time;
      return;
    }
    saved_ = std::clamp(saved_ + time, -kMostOwed, kMostSaved);
    if (saved_ <= Duration()) reached_ = true;
    if (saved_ >= kLeast) reached_ = false;
  }

  int percent_ = 0;
  Duration saved_ = kMostSaved;
  bool reached_ = false;
  // Since when the party has waited beside its own work; begins again when submissions have passed.
  std::optional<TimePoint> held_since_;
  bool later_ = false;    // time is counted in `unsettled_`
  bool passes_ = false;   // submissions pass now
  bool passed_ = false;   // submissions have passed since the party began to wait
  Duration unsettled_{};  // to be charged if its work ends by itself
};

}  // namespace gpurota::sched
