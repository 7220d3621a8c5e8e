#include "daemon/leases/lease_environment.h"

#include "abi/env.h"
#include "daemon/gpus/visible_devices.h"
#include "daemon/leases/container_folder.h"

namespace gpurota::daemon {

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
