// Whether one node can give all leases of a claim together. Where the scheduler does not count what
// the devices of a GPU share, it may assign more of the GPU to a claim, or to its pod, than the GPU
// has. Pure.
#pragma once

#include "kube/dra/claim.h"
#include "kube/offer.h"

#include <vector>

namespace gpurota::kube {

// kInvalid: no GPU of this node can ever give that; the sentence is for the author of the claim.
Result<void> check_together(const std::vector<Claim>& leases, const std::vector<NodeGpu>& gpus);
// kUnavailable: not possible with the GPUs as the daemon shows them now, so requesting the first
// lease would be useless.
Result<void> check_room(const std::vector<Claim>& leases, const std::vector<NodeGpu>& gpus);

}  // namespace gpurota::kube
