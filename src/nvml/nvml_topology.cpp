#include "nvml/nvml_topology.h"

namespace gpurota::nvml {
namespace {

Closeness closeness_of(nvmlGpuTopologyLevel_t ancestor) {
  switch (ancestor) {
    case NVML_TOPOLOGY_INTERNAL:
      return Closeness::kSameBoard;
    case NVML_TOPOLOGY_SINGLE:
      return Closeness::kOneSwitch;
    case NVML_TOPOLOGY_MULTIPLE:
      return Closeness::kSomeSwitches;
    case NVML_TOPOLOGY_HOSTBRIDGE:
      return Closeness::kHostBridge;
    case NVML_TOPOLOGY_NODE:
      return Closeness::kSameNode;
    case NVML_TOPOLOGY_SYSTEM:
      return Closeness::kAcrossNodes;
  }
  return Closeness::kUnknown;
}

Closeness between(const NvmlTable& table, Device a, Device b) {
  int status = NVML_P2P_STATUS_NOT_SUPPORTED;
  if (table.p2p_status != nullptr &&
      table.p2p_status(a, b, NVML_P2P_CAPS_INDEX_NVLINK, &status) == NVML_SUCCESS &&
      status == NVML_P2P_STATUS_OK) {
    return Closeness::kNvlink;
  }
  nvmlGpuTopologyLevel_t ancestor = NVML_TOPOLOGY_SYSTEM;
  if (table.common_ancestor == nullptr || table.common_ancestor(a, b, &ancestor) != NVML_SUCCESS) {
    return Closeness::kUnknown;
  }
  return closeness_of(ancestor);
}

}  // namespace

std::vector<GpuLink> read_links(const NvmlTable& table,
                                const std::vector<std::pair<GpuUuid, Device>>& gpus) {
  std::vector<GpuLink> links;
  for (auto a = gpus.begin(); a != gpus.end(); ++a) {
    for (auto b = std::next(a); b != gpus.end(); ++b) {
      links.push_back({a->first, b->first, between(table, a->second, b->second)});
    }
  }
  return links;
}

}  // namespace gpurota::nvml
