// What the site calls some of its GPUs: a part of config.h. Plain data.
#pragma once

#include "base/bytes.h"

#include <string>
#include <vector>

namespace gpurota::config {

// [gpu.class.NAME]: GPUs that the site has a name for. What is empty, or zero, says nothing.
struct GpuClass {
  std::string type;  // words of the model's name
  Bytes min_memory;
  std::string min_cc;             // "8.0"
  std::vector<std::string> gpus;  // by index or UUID
  bool operator==(const GpuClass&) const = default;
};

}  // namespace gpurota::config
