// External memory: memory of another exporter, imported by a descriptor. The exporter owns the
// memory and is charged for it until the last holder releases it. Under the driver's lock.
#pragma once

#include "sim/cuda/driver.h"

#include <memory>

namespace gpurota::sim {

// Destroying the object unmaps nothing: each mapping keeps the memory alive.
struct ExternalMemory {
  Context* context = nullptr;  // the context it is destroyed with
  std::shared_ptr<Physical> memory;
};

}  // namespace gpurota::sim
