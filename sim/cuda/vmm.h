// Virtual memory management: reservations, handles of physical memory. Under the driver's lock.
#pragma once

#include "sim/cuda/driver.h"

#include <memory>

namespace gpurota::sim {

// What a CUmemGenericAllocationHandle stands for; `references` counts create, import and retain.
struct MemoryHandle {
  std::shared_ptr<Physical> memory;
  CUmemAllocationProp properties = {};
  unsigned references = 1;
};

}  // namespace gpurota::sim
