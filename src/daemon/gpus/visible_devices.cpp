#include "daemon/gpus/visible_devices.h"

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

}  // namespace gpurota::daemon
