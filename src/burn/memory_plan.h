// How much of a GPU's memory `gpurota burn` takes, and when it hands some back: chunk by chunk, as
// soon as others leave little of the GPU free, and again only when there has been room for a while,
// longer after each time. Pure: `now` is an argument.
#pragma once

#include "base/bytes.h"

#include <chrono>

namespace gpurota::burn {

using TimePoint = std::chrono::steady_clock::time_point;
inline TimePoint now() { return std::chrono::steady_clock::now(); }

struct MemoryState {
  Bytes total;  // of the GPU, as the driver says: in a slice the limit
  Bytes free;
  Bytes held;
};

enum class MemoryStep { kKeep, kTake, kGiveBack };

class MemoryPlan {
 public:
  // Memory that is left to others, who may need a little before they can ask for more: a context.
  static constexpr Bytes kReserve = mib(256);
  static constexpr std::chrono::seconds kFirstWait{10};
  static constexpr std::chrono::seconds kLongestWait{320};

  MemoryPlan(Bytes target, Bytes total);

  Bytes target() const { return target_; }
  Bytes chunk() const { return chunk_; }

  // The next step; one chunk at a time. Asked until it says kKeep.
  MemoryStep next(const MemoryState& state, TimePoint now);
  // The driver refused a chunk that there seemed to be room for.
  void on_refused(TimePoint now);

 private:
  void on_short(TimePoint now);

  Bytes target_;
  Bytes chunk_;
  Bytes reserve_;
  TimePoint take_again_at_ = TimePoint::min();
  std::chrono::seconds wait_ = kFirstWait;
  bool is_short_ = false;  // since the last take
};

}  // namespace gpurota::burn
