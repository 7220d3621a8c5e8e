// Chooses among the GPUs that are suitable, when there are more than the request wants. Pure.
//
// A slice goes where it fits best: where the least room is left over. A swap lease goes where the
// fewest others take turns. For whole GPUs, the GPU that the user had last comes first (the user's
// files may still be cached there), then the GPU that has been idle longest. If a request wants
// several GPUs, they are chosen close together and of one model; the order above decides between
// sets that are equally close.
#pragma once

#include "core/topology.h"
#include "lease/placement.h"

#include <vector>

namespace gpurota::lease {

struct Candidate {
  const GpuRoom* room = nullptr;
  Bytes left;  // room for slices before this lease
};

// `count` of the candidates, in PCI order. There must be at least `count` candidates.
std::vector<const GpuRoom*> choose_gpus(const PlacementRequest& request,
                                        std::vector<Candidate> candidates, const Topology& topology,
                                        std::size_t count);

}  // namespace gpurota::lease
