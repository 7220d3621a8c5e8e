// When a submission waits because another lease has a window of the GPU's compute time: while the
// window word is odd (gpurota_page_grant::window). A process bounds by its own clock how long the
// word counts, because gpurotad may have ended.
//
// Any thread. All-zero memory is a process that never waited.
#pragma once

#include "interposer/os/sys.h"

#include <atomic>
#include <cstdint>

namespace gpurota::interposer {

class Windows {
 public:
  // An odd word that has not changed for this long does not count until it changes. gpurotad
  // changes an odd word every 50 ms.
  static constexpr int64_t kStuckUs = 250'000;

  // Whether a submission passes at once.
  bool passes(uint32_t word) const {
    return (word & 1) == 0 || word == passed_.load(std::memory_order_relaxed);
  }
  // How long the submission may still wait for the word to change, in microseconds; 0: the
  // submission passes.
  int64_t left(uint32_t word, int64_t now_us);
  // When a submission last had to wait; 0: never.
  int64_t waited_us() const { return waited_us_.load(std::memory_order_relaxed); }

 private:
  Mutex mutex_;  // guards the next two
  uint32_t seen_;
  int64_t seen_us_;               // since when the word has been `seen_`
  std::atomic<uint32_t> passed_;  // an odd word that does not count
  std::atomic<int64_t> waited_us_;
};

}  // namespace gpurota::interposer
