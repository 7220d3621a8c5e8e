// Settings of GPUs, and the site's names for some of them: a part of config.h. Plain data.
#pragma once

#include "base/bytes.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::config {

// [gpu.class.NAME]: GPUs that the site has a name for. A field that is empty, or zero, asks for
// nothing.
struct GpuClass {
  std::string type;  // words of the model's name
  Bytes min_memory;
  std::string min_cc;             // "8.0"
  std::vector<std::string> gpus;  // by index or UUID
  bool operator==(const GpuClass&) const = default;
};

// [gpu.0]: of one GPU.
struct GpuRule {
  // Memory in use on the GPU that no listed process has; empty: the daemon measures what is normal.
  std::optional<Bytes> unlisted;
  bool operator==(const GpuRule&) const = default;
};
using GpuRules = std::map<std::string, GpuRule>;  // by index or UUID

}  // namespace gpurota::config
