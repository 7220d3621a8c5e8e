#include "interposer/gate/windows.h"

namespace gpurota::interposer {

int64_t Windows::left(uint32_t word, int64_t now_us) {
  if (passes(word)) return 0;
  waited_us_.store(now_us, std::memory_order_relaxed);
  const Lock lock(mutex_);
  if (word != seen_) {
    seen_ = word;
    seen_us_ = now_us;
  }
  const int64_t left = seen_us_ + kStuckUs - now_us;
  if (left > 0) return left;
  passed_.store(word, std::memory_order_relaxed);
  return 0;
}

}  // namespace gpurota::interposer
