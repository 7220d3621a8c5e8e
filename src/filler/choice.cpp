#include "filler/choice.h"

#include <algorithm>

namespace gpurota::filler {
namespace {

bool may_use(const Candidate& candidate, const FreeGpu& gpu) {
  if (!candidate.may_start || gpu.idle_for < candidate.idle_after) return false;
  if (candidate.instances && candidate.running >= *candidate.instances) return false;
  return candidate.gpus.empty() ||
         std::find(candidate.gpus.begin(), candidate.gpus.end(), gpu.gpu) != candidate.gpus.end();
}

}  // namespace

std::vector<Placement> choose(std::vector<Candidate> candidates, const std::vector<FreeGpu>& free) {
  std::vector<Placement> placements;
  for (const FreeGpu& gpu : free) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (!may_use(candidates[i], gpu)) continue;
      if (!best || candidates[i].running < candidates[*best].running) best = i;
    }
    if (!best) continue;
    ++candidates[*best].running;
    placements.push_back({*best, gpu.gpu});
  }
  return placements;
}

}  // namespace gpurota::filler
