// Which GPUs are taken when more would do than are asked for. Pure.
//
// A slice goes where it fits best: least room left over. A swap lease goes where fewest others take
// turns. Whole GPUs: the user's own last one first
// (its files may still be cached there), then the one idle longest. Several are chosen close
// together and of one model; the order above decides between sets that are equally close.
#pragma once

#include "core/topology.h"
#include "lease/placement.h"

#include <vector>

namespace gpurota::lease {

struct Candidate {
  const GpuRoom* room = nullptr;
  Bytes left;  // room for slices before this one
};

// `count` of the candidates, in PCI order. There must be at least as many.
std::vector<const GpuRoom*> choose_gpus(const PlacementRequest& request,
                                        std::vector<Candidate> candidates, const Topology& topology,
                                        std::size_t count);

}  // namespace gpurota::lease
