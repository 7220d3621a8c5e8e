// Settings of GPUs, and the site's names for some of them: a part of config.h. Plain data.
#pragma once

#include "base/bytes.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::config {

// [gpu.class.NAME]: the site's name for some GPUs. A field that is empty or zero requires nothing.
struct GpuClass {
  std::string type;  // words of the model's name
  Bytes min_memory;
  std::string min_cc;             // "8.0"
  std::vector<std::string> gpus;  // by index or UUID
  bool operator==(const GpuClass&) const = default;
};

// [gpu.0]: settings of one GPU.
struct GpuRule {
  // The normal use of the GPU's memory by unlisted processes; empty: the daemon measures it.
  std::optional<Bytes> unlisted;
  bool operator==(const GpuRule&) const = default;
};
using GpuRules = std::map<std::string, GpuRule>;  // by index or UUID

}  // namespace gpurota::config
