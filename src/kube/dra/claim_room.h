// Whether the leases of one claim can be had together. The scheduler may give a claim, or its pod,
// what one GPU cannot give: where it does not count what the GPU's devices share. Pure.
#pragma once

#include "kube/dra/claim.h"
#include "kube/offer.h"

#include <vector>

namespace gpurota::kube {

// kInvalid: no GPU of this node could ever give that; the sentence is for whoever made the claim.
Result<void> check_together(const std::vector<Claim>& leases, const std::vector<NodeGpu>& gpus);
// kUnavailable: as the daemon shows its GPUs now they cannot, so that asking for the first would be
// for nothing.
Result<void> check_room(const std::vector<Claim>& leases, const std::vector<NodeGpu>& gpus);

}  // namespace gpurota::kube
