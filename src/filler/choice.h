// Which filler starts on which free GPU, and when a running one must leave for another. A GPU has
// at most one filler. Idle GPUs are shared among users, then among each user's fillers. The user or
// filler on the fewest GPUs comes first; among equals, the one whose last start is longest ago. So
// if only one of several fillers can run, they take turns. Pure.
#pragma once

#include "base/ids.h"
#include "core/time.h"

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace gpurota::filler {

struct Candidate {
  std::string name;
  std::vector<GpuUuid> gpus;     // that it may use; empty: all
  std::optional<int> instances;  // the most at a time; empty: one on each idle GPU
  int running = 0;
  bool may_start = true;  // false: paused, or it waits after a failure
  Duration idle_after{};  // the GPU must have been idle this long
  uid_t user = 0;
  TimePoint last_start = TimePoint::min();  // on any GPU
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

// `free`: GPUs where a filler may start now, by index. Candidates with equal claims keep their
// order.
std::vector<Placement> choose(std::vector<Candidate> candidates, const std::vector<FreeGpu>& free);

// Whether filler `current`, which has been on this GPU for long enough, leaves for another
// candidate. The other candidate's claim must come before the claim that `current` will have once
// it has left. A filler that may not start (it is paused) leaves for any candidate.
bool makes_way(std::vector<Candidate> candidates, std::size_t current, const FreeGpu& gpu);

// How long running fillers need not leave for a filler whose last run failed. The time begins with
// one stay, at least ten minutes, and doubles with each failure in a row. The time is bounded by a
// day or one stay, whichever is more, because what the filler lacked may be available again.
Duration passed_over_for(int failures, Duration longest_stay);

}  // namespace gpurota::filler
