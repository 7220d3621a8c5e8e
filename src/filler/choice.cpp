#include "filler/choice.h"

#include <algorithm>
#include <tuple>

namespace gpurota::filler {
namespace {

// The bounds of passed_over_for(). A bound that is shorter than the longest stay is raised to it.
constexpr Duration kLeastPassedOver = std::chrono::minutes(10);
constexpr Duration kMostPassedOver = std::chrono::hours(24);

bool may_use(const Candidate& candidate, const FreeGpu& gpu) {
  if (!candidate.may_start || gpu.idle_for < candidate.idle_after) return false;
  if (candidate.instances && candidate.running >= *candidate.instances) return false;
  return candidate.gpus.empty() ||
         std::find(candidate.gpus.begin(), candidate.gpus.end(), gpu.gpu) != candidate.gpus.end();
}

// The least claim comes first.
using Claim = std::tuple<int, int, TimePoint, TimePoint>;

Claim claim_of(const std::vector<Candidate>& candidates, const Candidate& candidate) {
  int running = 0;  // all fillers of the candidate's user
  TimePoint last_start = TimePoint::min();
  for (const Candidate& each : candidates) {
    if (each.user != candidate.user) continue;
    running += each.running;
    last_start = std::max(last_start, each.last_start);
  }
  return {running, candidate.running, last_start, candidate.last_start};
}

std::optional<std::size_t> first_of(const std::vector<Candidate>& candidates, const FreeGpu& gpu) {
  std::optional<std::size_t> best;
  Claim least;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!may_use(candidates[i], gpu)) continue;
    const Claim claim = claim_of(candidates, candidates[i]);
    if (best && !(claim < least)) continue;
    best = i;
    least = claim;
  }
  return best;
}

}  // namespace

std::vector<Placement> choose(std::vector<Candidate> candidates, const std::vector<FreeGpu>& free) {
  std::vector<Placement> placements;
  for (const FreeGpu& gpu : free) {
    const auto best = first_of(candidates, gpu);
    if (!best) continue;
    ++candidates[*best].running;
    placements.push_back({*best, gpu.gpu});
  }
  return placements;
}

bool makes_way(std::vector<Candidate> candidates, std::size_t current, const FreeGpu& gpu) {
  Candidate& leaves = candidates[current];
  --leaves.running;
  const Claim own = claim_of(candidates, leaves);
  const bool stays_if_it_can = leaves.may_start;
  leaves.may_start = false;
  const auto next = first_of(candidates, gpu);
  return next && (!stays_if_it_can || claim_of(candidates, candidates[*next]) < own);
}

Duration passed_over_for(int failures, Duration longest_stay) {
  const Duration most = std::max(kMostPassedOver, longest_stay);
  Duration time = std::max(kLeastPassedOver, longest_stay);
  for (int i = 1; i < failures && time < most; ++i) time *= 2;
  return std::min(time, most);
}

}  // namespace gpurota::filler
