// Decides which lease a container's devices stand for. Pure.
#pragma once

#include "kube/device_ids.h"
#include "kube/offer.h"
#include "proto/methods.h"

#include <set>
#include <string>
#include <vector>

namespace gpurota::kube {

// kInvalid if no single lease can have these devices: the message is for the author of the pod, who
// sees it in `kubectl describe`, and names the remedy.
Result<proto::LeaseRequest> lease_wish(Resource resource, const std::set<Device>& devices,
                                       const Rules& rules);

// The GPUs of these devices, each once, in order.
std::vector<GpuUuid> gpus_of(const std::set<Device>& devices);

}  // namespace gpurota::kube
