#include "daemon/leases/lease_environment.h"

#include "abi/env.h"
#include "daemon/leases/container_folder.h"

namespace gpurota::daemon {

std::string visible_devices(const Lease& lease, const GpuTable& gpus) {
  std::string visible;
  for (const LeaseGpu& share : lease.gpus) {
    const GpuEntry* gpu = gpus.find(share.uuid);
    if (!gpu) continue;
    if (!visible.empty()) visible += ',';
    // Whole GPUs by index: UUIDs there break vLLM and Ray. MIG instances have no index that CUDA
    // knows.
    visible += gpu->info.parent.value.empty() ? std::to_string(gpu->info.index) : share.uuid.value;
  }
  return visible;
}

std::vector<proto::Variable> lease_environment(const LeaseEntry& entry, const GpuTable& gpus,
                                               const std::string& tenant_socket, bool container) {
  std::vector<proto::Variable> variables = {
      {"CUDA_VISIBLE_DEVICES", visible_devices(entry.lease, gpus)},
      {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"},
      {GPUROTA_ENV_LEASE, to_string(entry.lease.id)}};
  if (container && entry.lease.exclusive()) variables.push_back({GPUROTA_ENV_WHOLE, "1"});
  if (container || !entry.lease.exclusive()) {
    variables.push_back(
        {GPUROTA_ENV_SOCKET, container ? container_socket(tenant_socket) : tenant_socket});
    variables.push_back({GPUROTA_ENV_TOKEN, entry.token});
  }
  return variables;
}

}  // namespace gpurota::daemon
