// Which filler goes on which GPU that is free for one. One to a GPU; among those that may, the one that
// is on the fewest, then the one added first, so that several fillers share what is idle. Pure.
#pragma once

#include "base/ids.h"
#include "core/time.h"

#include <optional>
#include <vector>

namespace gpurota::filler {

struct Candidate {
  std::string name;
  std::vector<GpuUuid> gpus;     // that it may use; empty: all
  std::optional<int> instances;  // at most so many at once; empty: one on each idle GPU
  int running = 0;
  bool may_start = true;  // false: paused, or it waits after a failure
  Duration idle_after{};  // not before nobody has been there for so long
};

struct FreeGpu {
  GpuUuid gpu;
  Duration idle_for{};
};

struct Placement {
  std::size_t candidate;  // index
  GpuUuid gpu;
  bool operator==(const Placement&) const = default;
};

// `free`: GPUs where one may start now, in the order of their indices.
std::vector<Placement> choose(std::vector<Candidate> candidates, const std::vector<FreeGpu>& free);

}  // namespace gpurota::filler
