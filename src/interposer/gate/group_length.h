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
  static constexpr int64_t kTooLongUs = 10'000;   // how long somebody waits for the end of a group
  static constexpr int64_t kLongestUs = 100'000;  // a longer time has a pause in it

  // The result of waiting for the end of a group.
  enum class Wait : uint8_t {
    kOver,     // the group had ended before, so submissions take less time than thought
    kEnded,    // it ended just now
    kTooLong,  // it did not end in time, so submissions take longer than thought
  };

  // For a group of `count` submissions.
  void waited(uint32_t count, Wait found, int64_t now_us) {
    const int64_t took = ended_us_ != 0 ? now_us - ended_us_ : 0;
    if (found == Wait::kOver) {
      each_us_ /= 2;
    } else if (found == Wait::kTooLong) {
      each_us_ = kTooLongUs;
    } else if (took > 0 && took < kLongestUs && count != 0) {
      each_us_ = took / count;
    }
    ended_us_ = found == Wait::kEnded ? now_us : 0;
  }

  // `times`: for groups that take this many times as long.
  uint32_t most(uint32_t times = 1) const {
    const int64_t group_us = kGroupUs * times;
    if (each_us_ * kMost <= kGroupUs) return kMost * times;
    return each_us_ >= group_us ? 1 : static_cast<uint32_t>(group_us / each_us_);
  }

 private:
  int64_t ended_us_;  // when the group before ended; 0: not known
  int64_t each_us_;   // how long one submission takes; 0: not known
};

}  // namespace gpurota::interposer
