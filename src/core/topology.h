// How close GPUs are to each other: data from the driver, read by placement.
#pragma once

#include "core/gpu.h"

#include <map>
#include <utility>
#include <vector>

namespace gpurota {

// Smaller is closer. The steps are those that the driver distinguishes; only their order matters.
enum class Closeness : int {
  kNvlink = 0,
  kSameBoard = 1,
  kOneSwitch = 2,     // one PCIe switch between them
  kSomeSwitches = 3,  // several, without the CPU
  kHostBridge = 4,    // through the CPU's PCIe host bridge
  kSameNode = 5,      // through one NUMA node
  kAcrossNodes = 6,
  kUnknown = 7,
};

struct GpuLink {
  GpuUuid a;
  GpuUuid b;
  Closeness closeness = Closeness::kUnknown;
  bool operator==(const GpuLink&) const = default;
};

// The NVLink group of each GPU that has links, direct or through other GPUs: the smallest UUID in
// the group, the same for all members.
std::map<GpuUuid, GpuUuid> nvlink_groups(const std::vector<GpuLink>& links);

class Topology {
 public:
  Topology() = default;
  explicit Topology(const std::vector<GpuLink>& links) {
    for (const GpuLink& link : links) {
      between_[{link.a, link.b}] = link.closeness;
      between_[{link.b, link.a}] = link.closeness;
    }
  }
  Closeness between(const GpuUuid& a, const GpuUuid& b) const {
    const auto it = between_.find({a, b});
    return it == between_.end() ? Closeness::kUnknown : it->second;
  }

 private:
  std::map<std::pair<GpuUuid, GpuUuid>, Closeness> between_;
};

}  // namespace gpurota
