#include "core/topology.h"

#include <algorithm>

namespace gpurota {

// Maps each GPU to another of its group, or to itself if it is the first of the group.
std::map<GpuUuid, GpuUuid> nvlink_groups(const std::vector<GpuLink>& links) {
  std::map<GpuUuid, GpuUuid> towards;
  const auto first_of = [&](GpuUuid gpu) {
    while (towards.try_emplace(gpu, gpu).first->second != gpu) gpu = towards.at(gpu);
    return gpu;
  };
  for (const GpuLink& link : links) {
    if (link.closeness != Closeness::kNvlink) continue;
    const GpuUuid a = first_of(link.a);
    const GpuUuid b = first_of(link.b);
    towards[std::max(a, b)] = std::min(a, b);
  }
  for (auto& [gpu, group] : towards) group = first_of(gpu);
  return towards;
}

}  // namespace gpurota
