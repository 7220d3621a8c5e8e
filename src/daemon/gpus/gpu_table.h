// The GPUs of the machine and the last sample of each. State thread only.
#pragma once

#include "core/gpu.h"
#include "core/time.h"
#include "core/topology.h"
#include "lease/gpu_selector.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::daemon {

struct GpuEntry {
  GpuInfo info;
  GpuSample sample;
  WallTime idle_since{};  // when its last lease ended; epoch: it never had one
  TimePoint taken{};      // when `sample` began
  // For a unified GPU: the machine's used memory that is not listed as the GPU's, as of `sample`.
  Bytes machine_use{};
  GpuFigures figures{};                   // at most some seconds old
  std::optional<GpuUuid> nvlink_group{};  // as nvlink_groups()
};

class GpuTable {
 public:
  explicit GpuTable(std::vector<GpuInfo> infos, const std::vector<GpuLink>& links = {}) {
    const auto groups = nvlink_groups(links);
    for (GpuInfo& info : infos) {
      const auto group = groups.find(info.uuid);
      entries_.emplace_back().info = std::move(info);
      if (group != groups.end()) entries_.back().nvlink_group = group->second;
    }
  }

  const std::vector<GpuEntry>& entries() const { return entries_; }
  GpuEntry* find(const GpuUuid& uuid) {
    for (GpuEntry& entry : entries_) {
      if (entry.info.uuid == uuid) return &entry;
    }
    return nullptr;
  }
  const GpuEntry* find(const GpuUuid& uuid) const {
    return const_cast<GpuTable*>(this)->find(uuid);
  }
  // The GPU's name for people: "0", or "0:1" for a MIG instance; "?": there is no such GPU.
  std::string name_of(const GpuUuid& uuid) const {
    const GpuEntry* const entry = find(uuid);
    if (!entry) return "?";
    const GpuEntry* const parent = find(entry->info.parent);
    return lease::name_of(entry->info, parent ? &parent->info : nullptr);
  }
  std::vector<GpuInfo> infos() const {
    std::vector<GpuInfo> infos;
    for (const GpuEntry& entry : entries_) infos.push_back(entry.info);
    return infos;
  }

 private:
  std::vector<GpuEntry> entries_;
};

}  // namespace gpurota::daemon
