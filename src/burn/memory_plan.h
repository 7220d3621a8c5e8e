// How much of a GPU's memory `gpurota burn` takes, and when it gives some back. Gives back chunk by
// chunk, as soon as others leave little of the GPU free. Takes a chunk again only when there has
// been room for a while, and waits longer after each shortage. Pure: `now` is an argument.
#pragma once

#include "base/bytes.h"

#include <chrono>

namespace gpurota::burn {

using TimePoint = std::chrono::steady_clock::time_point;
inline TimePoint now() { return std::chrono::steady_clock::now(); }

struct MemoryState {
  Bytes total;  // of the GPU, from the driver: in a slice the limit
  Bytes free;
  Bytes held;
};

enum class MemoryStep { kKeep, kTake, kGiveBack };

class MemoryPlan {
 public:
  // Memory left to others: a program may need a little (a context) before it can ask for more.
  static constexpr Bytes kReserve = mib(256);
  static constexpr std::chrono::seconds kFirstWait{10};
  static constexpr std::chrono::seconds kLongestWait{320};

  MemoryPlan(Bytes target, Bytes total);

  Bytes target() const { return target_; }
  Bytes chunk() const { return chunk_; }

  // The next step, for one chunk. Call it until the result is kKeep.
  MemoryStep next(const MemoryState& state, TimePoint now);
  // Call it when the driver refused a chunk although there seemed to be room.
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
