// External memory: memory that was made by somebody else and is imported by a descriptor. The
// memory is the exporter's, and charged to it, until the last who holds it has let it go. Under the
// driver's lock.
#pragma once

#include "sim/cuda/driver.h"

#include <memory>

namespace gpurota::sim {

// A mapping of it keeps the memory on its own: destroying this unmaps nothing.
struct ExternalMemory {
  Context* context = nullptr;  // that it goes with
  std::shared_ptr<Physical> memory;
};

}  // namespace gpurota::sim
