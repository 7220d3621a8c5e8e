// Finds changes with which a request that has to wait would start now. The planner is asked, so
// that a user who takes the advice gets what it says, as long as nothing else changes. Pure.
#pragma once

#include "lease/request_queue.h"

#include <chrono>
#include <vector>

namespace gpurota::lease {

// One change; all else stays as it was asked for.
struct WayOut {
  enum class Kind {
    kTime,       // ends after `lasts`: before somebody else needs the GPUs
    kOtherGpus,  // not those that were named
    kMemory,     // a slice, or a swap lease, of `memory`
    kSwap,       // takes turns
    kCount,      // `count` GPUs
  };
  Kind kind;
  std::chrono::seconds lasts{};
  Bytes memory{};
  int count = 0;
  std::vector<GpuUuid> gpus{};  // where it would start
};

// For the request at this place in the queue. `end_is_kept`: the site ends it when its time is
// over, so that a shorter time is a promise. Empty: it starts anyway, or nothing helps. At most one
// of each kind, the smallest change first.
std::vector<WayOut> ways_out(const QueueView& view, std::size_t place, bool end_is_kept,
                             WallTime now);

// The request, changed so.
PlacementRequest changed(PlacementRequest placement, const WayOut& way);

}  // namespace gpurota::lease
