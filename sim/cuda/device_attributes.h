// Answers of a simulated GPU to cuDeviceGetAttribute: the value in the machine file where it has
// one, else the value common to GPUs of that architecture.
#pragma once

#include "abi/cuda_abi.h"
#include "sim/state/layout.h"

#include <optional>

namespace gpurota::sim {

// Empty if `attribute` is unknown.
std::optional<int> device_attribute(const DeviceConfig& gpu, int attribute);

}  // namespace gpurota::sim
