// Which filler goes on which GPU that is free for one, and when one that is on has to make way for
// another. One to a GPU. Idle GPUs are shared among users, then among the fillers of each: the one
// on the fewest GPUs is first, then the one whose last start is longest ago; so fillers of which
// only one can be on go round. Pure.
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
  std::optional<int> instances;  // at most so many at once; empty: one on each idle GPU
  int running = 0;
  bool may_start = true;  // false: paused, or it waits after a failure
  Duration idle_after{};  // not before nobody has been there for so long
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

// `free`: GPUs where one may start now, in the order of their indices. Those with equal claims in
// the order of candidates.
std::vector<Placement> choose(std::vector<Candidate> candidates, const std::vector<FreeGpu>& free);

// Whether the one that has been on this GPU for long enough makes way for another candidate: one
// with a better claim, once it is gone. One that may not start (it is paused) makes way for any.
bool makes_way(std::vector<Candidate> candidates, std::size_t current, const FreeGpu& gpu);

// For how long nobody makes way for one whose last run failed: a stay, twice as long with each
// failure in a row, but not for good; what it lacked may be there again.
Duration passed_over_for(int failures, Duration longest_stay);

}  // namespace gpurota::filler
