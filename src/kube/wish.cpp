#include "kube/wish.h"

#include <fmt/format.h>

namespace gpurota::kube {

std::vector<GpuUuid> gpus_of(const std::set<Device>& devices) {
  std::vector<GpuUuid> gpus;
  for (const Device& device : devices) {
    if (gpus.empty() || gpus.back() != device.gpu) gpus.push_back(device.gpu);
  }
  return gpus;
}

Result<proto::LeaseRequest> lease_wish(Resource resource, const std::set<Device>& devices,
                                       const Rules& rules) {
  const std::vector<GpuUuid> gpus = gpus_of(devices);
  proto::LeaseRequest wish;
  wish.gpu_ids.emplace();
  for (const GpuUuid& gpu : gpus) wish.gpu_ids->push_back(gpu.value);
  switch (resource) {
    case Resource::kGpu:
      break;
    case Resource::kMemory: {
      const Bytes memory(rules.unit.count() * devices.size());
      if (gpus.size() > 1) {
        return fail(
            Code::kInvalid,
            fmt::format("the {} of this container are on {} GPUs, as no GPU of this node has "
                        "so much left, and memory of several GPUs is no lease: delete the "
                        "pod, and let it ask for less, or for another node",
                        to_string(memory), gpus.size()));
      }
      wish.memory = SizeSpec{memory, 0};
      break;
    }
    case Resource::kTurn:
      if (gpus.size() != devices.size()) {
        return fail(
            Code::kInvalid,
            fmt::format("this container asks for turns on {} GPUs, and this node has them on "
                        "{} only: delete the pod, and let it ask for less",
                        devices.size(), gpus.size()));
      }
      wish.swap = true;
      if (rules.turn_memory) wish.memory = SizeSpec{*rules.turn_memory, 0};
      break;
  }
  return wish;
}

}  // namespace gpurota::kube
