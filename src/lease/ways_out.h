// Finds changes that would let a waiting request start now. The planner checks each change, so that
// a user who makes it gets what was promised, if nothing else changes. Pure.
#pragma once

#include "lease/request_queue.h"

#include <chrono>
#include <vector>

namespace gpurota::lease {

// One change; everything else stays as requested.
struct WayOut {
  enum class Kind {
    kTime,       // a lease of `lasts`: ends before anybody else needs the GPUs
    kOtherGpus,  // other GPUs than the named ones
    kMemory,     // a slice, or a swap lease, of `memory`
    kSwap,       // takes turns
    kCount,      // `count` GPUs
    kCompute,    // a share of `compute` percent of the compute time; 0: no share
  };
  Kind kind;
  std::chrono::seconds lasts{};
  Bytes memory{};
  int count = 0;
  int compute = 0;
  std::vector<GpuUuid> gpus{};  // where it would start
};

// For the request at this place in the queue. `end_is_kept`: the site ends a lease when its time is
// over, so that a shorter time is a promise. Empty: it starts anyway, or nothing helps. At most one
// of each kind, the smallest change first.
std::vector<WayOut> ways_out(const QueueView& view, std::size_t place, bool end_is_kept,
                             WallTime now);

// The request with this change.
PlacementRequest changed(PlacementRequest placement, const WayOut& way);

}  // namespace gpurota::lease
