// How many submissions to a stream make a group for InFlight: as many as take about a quarter
// of a millisecond, from 1 to 8, measured from the end of one group to the end of the next.
//
// Not locked. All-zero memory: nothing was measured yet.
#pragma once

#include <cstdint>

namespace gpurota::interposer {

class GroupLength {
 public:
  static constexpr uint32_t kMost = 8;
  static constexpr int64_t kGroupUs = 250;

  // A group of `count` submissions has ended. `waited`: it ended at `now_us`. If not, it had ended
  // before, so submissions take less time than thought.
  void ended(uint32_t count, bool waited, int64_t now_us) {
    if (!waited) {
      each_us_ /= 2;
    } else if (ended_us_ != 0 && count != 0) {
      each_us_ = (now_us - ended_us_) / count;
    }
    ended_us_ = waited ? now_us : 0;
  }

  uint32_t most() const {
    if (each_us_ * kMost <= kGroupUs) return kMost;
    return each_us_ >= kGroupUs ? 1 : static_cast<uint32_t>(kGroupUs / each_us_);
  }

 private:
  int64_t ended_us_;  // when the group before ended; 0: not known
  int64_t each_us_;   // how long one submission takes; 0: not known
};

}  // namespace gpurota::interposer
