// Answers of a simulated GPU to cuDeviceGetAttribute: from its configuration where the machine file
// says it, else what GPUs of its architecture have in common.
#pragma once

#include "abi/cuda_abi.h"
#include "sim/state/layout.h"

#include <optional>

namespace gpurota::sim {

// Empty for a number that is no attribute.
std::optional<int> device_attribute(const DeviceConfig& gpu, int attribute);

}  // namespace gpurota::sim
