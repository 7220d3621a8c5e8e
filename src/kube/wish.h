// Decides which lease a container's devices stand for. Pure.
#pragma once

#include "kube/device_ids.h"
#include "kube/offer.h"
#include "proto/methods.h"

#include <set>
#include <string>
#include <vector>

namespace gpurota::kube {

// kInvalid if no lease could: the sentence is for whoever made the pod (`kubectl describe`), and
// says what to do.
Result<proto::LeaseRequest> lease_wish(Resource resource, const std::set<Device>& devices,
                                       const Rules& rules);

// The GPUs of these devices, each once, in order.
std::vector<GpuUuid> gpus_of(const std::set<Device>& devices);

}  // namespace gpurota::kube
