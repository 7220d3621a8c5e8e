#include "kube/dra/health.h"

#include "kube/dra/claim.h"

#include <fmt/format.h>

namespace gpurota::kube {
namespace {

DeviceHealth health_of(const NodeGpu& gpu, bool is_daemon_away) {
  if (is_daemon_away) return {{}, Health::kUnknown, "gpurotad does not answer on this node"};
  if (!gpu.works)
    return {{}, Health::kUnhealthy, "the GPU is lost: see `gpurota doctor` on this node"};
  if (gpu.ecc_errors > 0) {
    return {
        {},
        Health::kUnhealthy,
        fmt::format("{} uncorrected memory errors since the driver was loaded", gpu.ecc_errors)};
  }
  return {{}, Health::kHealthy, gpu.in_service ? "" : "drained: it takes no new pods"};
}

}  // namespace

std::vector<DeviceHealth> device_health(const std::vector<NodeGpu>& gpus, bool is_daemon_away) {
  std::vector<DeviceHealth> all;
  for (const NodeGpu& gpu : gpus) {
    for (const Resource of : kDevicesOfAGpu) {
      DeviceHealth& health = all.emplace_back(health_of(gpu, is_daemon_away));
      health.device = device_name(gpu.uuid, of);
    }
  }
  return all;
}

}  // namespace gpurota::kube
