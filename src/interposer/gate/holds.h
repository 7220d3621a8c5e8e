// When a submission is held back because another lease, an interactive one, has work on the GPU.
//
// Each interactive process has a word (abi/wire_latency.h): odd while it has work. A submission
// passes when every word is even and has been so for a short gap: between two tokens a server has
// no work for a moment, too. A process bounds by its own clock how long it is held back:
//   - a word that has not changed for kStuckUs does not count until it changes;
//   - all words together hold back the process for at most its budget of the time.
//
// Any thread. All-zero memory is a process that was never held back.
#pragma once

#include "abi/wire.h"
#include "interposer/os/sys.h"

#include <atomic>
#include <cstdint>

namespace gpurota::interposer {

// The next step of a submission.
struct HoldStep {
  enum class Kind : uint8_t { kPass, kWait } kind = Kind::kPass;
  uint32_t index = 0;      // kWait: of the word to wait for
  uint32_t seen = 0;       // kWait: its value
  int64_t timeout_us = 0;  // kWait: above 0
};

class Holds {
 public:
  static constexpr int64_t kStuckUs = 50'000;
  static constexpr int64_t kLeastGapUs = 100, kMostGapUs = 500;
  // The most that is saved up while nothing is held back. The budget is added during a hold, too,
  // so at 800 thousandths a hold takes 200 ms at most.
  static constexpr int64_t kMostSavedUs = 40'000;
  // An exhausted budget holds back again only when this much is saved, so that the others' work
  // runs in pieces that are worth while.
  static constexpr int64_t kLeastSavedUs = 10'000;

  // Whether a submission passes at once. `word(index)` is the value of a word in `held_for`.
  template <typename Word>
  bool passes(uint32_t held_for, Word word) const {
    for (uint32_t rest = held_for; rest != 0; rest &= rest - 1) {
      const auto index = static_cast<uint32_t>(__builtin_ctz(rest));
      if (word(index) != words_[index].passed.load(std::memory_order_relaxed)) return false;
    }
    return true;
  }

  // The calls around a submission that did not pass at once: begin(), then next() until it says
  // kPass, with a wait after each kWait, then end(). `budget`: the part of the time for which
  // submissions may be held back, in thousandths.
  void begin(uint32_t budget, int64_t now_us);
  template <typename Word>
  HoldStep next(uint32_t held_for, uint32_t budget, int64_t now_us, Word word) {
    const Lock lock(mutex_);
    const int64_t left = settle(budget, now_us);
    if (left <= 0) return {};
    for (uint32_t rest = held_for; rest != 0; rest &= rest - 1) {
      const auto index = static_cast<uint32_t>(__builtin_ctz(rest));
      HoldStep step = check(index, word(index), now_us);
      if (step.kind == HoldStep::Kind::kPass) continue;
      if (step.timeout_us > left) step.timeout_us = left;
      return step;
    }
    return {};
  }
  void end(uint32_t budget, int64_t now_us);

  // The sum of the times in which at least one submission was held back.
  uint64_t held_us() const { return held_us_.load(std::memory_order_relaxed); }
  // When a word was last seen to change; 0: never.
  int64_t busy_us() const { return busy_us_.load(std::memory_order_relaxed); }

 private:
  struct Word {
    std::atomic<uint32_t> passed;  // the value with which submissions pass
    uint32_t seen;                 // the last value
    int64_t seen_us;               // when `seen` was first seen
  };

  int64_t settle(uint32_t budget, int64_t now_us);
  HoldStep check(uint32_t index, uint32_t value, int64_t now_us);
  int64_t gap_us() const { return gap_us_ != 0 ? gap_us_ : kLeastGapUs; }

  Mutex mutex_;  // guards all but the atomics
  Word words_[GPUROTA_MOST_HOLDS];
  uint32_t inside_;  // submissions that are held back
  bool exhausted_;
  int64_t saved_us_;    // what may still be spent
  int64_t counted_us_;  // up to when `saved_us_` is right
  int64_t gap_us_;      // 0: kLeastGapUs
  std::atomic<uint64_t> held_us_;
  std::atomic<int64_t> busy_us_;
};

}  // namespace gpurota::interposer
