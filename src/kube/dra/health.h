// The health of a node's devices, which kubelet writes into the status of the pods that use them.
// Pure.
#pragma once

#include "kube/offer.h"

#include <string>
#include <vector>

namespace gpurota::kube {

enum class Health { kUnknown, kHealthy, kUnhealthy };

struct DeviceHealth {
  std::string device;
  Health health = Health::kUnknown;
  std::string message;  // for people; empty: there is nothing to say
  bool operator==(const DeviceHealth&) const = default;
};

// The health of all devices of each GPU. `is_daemon_away`: their state is unknown.
std::vector<DeviceHealth> device_health(const std::vector<NodeGpu>& gpus, bool is_daemon_away);

}  // namespace gpurota::kube
