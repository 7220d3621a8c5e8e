#include "lease/gpu_choice.h"

#include <algorithm>
#include <optional>

namespace gpurota::lease {
namespace {

// A GPU of another model costs more than the longest path: ranks of one job wait for the slowest.
constexpr int kOtherModel = 100;
// Closer than any link.
constexpr int kSameGpu = -1;

bool is_preferred(const PlacementRequest& request, const GpuRoom& room) {
  return std::find(request.preferred.begin(), request.preferred.end(), room.info.uuid) !=
         request.preferred.end();
}

// The distance to the closest of the GPUs that the request wants to be near; 0: no such wish.
int way_to_near(const PlacementRequest& request, const GpuRoom& room, const Topology& topology) {
  std::optional<int> shortest;
  for (const GpuUuid& near : request.wishes.near) {
    const bool same = near == room.info.uuid || near == room.info.parent;
    const int way = same ? kSameGpu : static_cast<int>(topology.between(near, room.info.uuid));
    shortest = std::min(shortest.value_or(way), way);
  }
  return shortest.value_or(0);
}

bool better(const PlacementRequest& request, const Topology& topology, const Candidate& a,
            const Candidate& b) {
  const int a_way = way_to_near(request, *a.room, topology);
  const int b_way = way_to_near(request, *b.room, topology);
  if (a_way != b_way) return a_way < b_way;
  // Processes without a lease may take more memory at any time, even promised memory.
  if (!request.exclusive() && a.room->in_unreserved_use != b.room->in_unreserved_use) {
    return b.room->in_unreserved_use;
  }
  if (a.room->hidden.is_zero() != b.room->hidden.is_zero()) return a.room->hidden.is_zero();
  if (request.swap) {
    // A swap lease goes where the fewest other swap leases are; among such GPUs, where it gets most
    // memory.
    if (a.room->swap_leases != b.room->swap_leases) {
      return a.room->swap_leases < b.room->swap_leases;
    }
    if (a.left != b.left) return a.left > b.left;
  } else if (request.memory) {
    if (a.left != b.left) return a.left < b.left;
  } else {
    const bool a_had = is_preferred(request, *a.room), b_had = is_preferred(request, *b.room);
    if (a_had != b_had) return a_had;
    if (a.room->idle_since != b.room->idle_since) return a.room->idle_since < b.room->idle_since;
  }
  return a.room->info.index < b.room->info.index;
}

int cost_between(const GpuRoom& a, const GpuRoom& b, const Topology& topology) {
  const int way = static_cast<int>(topology.between(a.info.uuid, b.info.uuid));
  return way + (a.info.name == b.info.name ? 0 : kOtherModel);
}

// Grows a set from candidates[seed], each time by the candidate that is closest to all in the set;
// among equals by the first. Returns the cost of the set.
int grow(const PlacementRequest& request, const std::vector<Candidate>& candidates,
         std::size_t seed, std::size_t count, const Topology& topology,
         std::vector<const GpuRoom*>& set) {
  set.assign(1, candidates[seed].room);
  std::vector<int> cost;
  for (const Candidate& each : candidates) {
    cost.push_back(way_to_near(request, *each.room, topology));
  }
  std::vector<bool> taken(candidates.size(), false);
  taken[seed] = true;
  int total = cost[seed];
  while (set.size() < count) {
    std::size_t best = candidates.size();
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (taken[i]) continue;
      cost[i] += cost_between(*candidates[i].room, *set.back(), topology);
      if (best == candidates.size() || cost[i] < cost[best]) best = i;
    }
    taken[best] = true;
    total += cost[best];
    set.push_back(candidates[best].room);
  }
  return total;
}

}  // namespace

std::vector<const GpuRoom*> choose_gpus(const PlacementRequest& request,
                                        std::vector<Candidate> candidates, const Topology& topology,
                                        std::size_t count) {
  std::sort(candidates.begin(), candidates.end(), [&](const Candidate& a, const Candidate& b) {
    return better(request, topology, a, b);
  });
  std::vector<const GpuRoom*> best, set;
  int least = 0;
  for (std::size_t seed = 0; seed < candidates.size(); ++seed) {
    const int cost = grow(request, candidates, seed, count, topology, set);
    if (best.empty() || cost < least) {
      least = cost;
      best = set;
    }
    if (count == 1) break;  // the first is the best
  }
  // The program sees the GPUs in PCI order, as on a machine with only these.
  std::sort(best.begin(), best.end(),
            [](const GpuRoom* a, const GpuRoom* b) { return a->info.index < b->info.index; });
  return best;
}

}  // namespace gpurota::lease
