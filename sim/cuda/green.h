// Green contexts: a part of a device's multiprocessors, used as a view of the primary context.
// Under the driver's lock.
#pragma once

#include "sim/cuda/driver.h"

namespace gpurota::sim {

struct ResourceDesc {
  unsigned processors = 0;
};

struct GreenContext {
  int ordinal = 0;
  unsigned processors = 0;
  Context* view = nullptr;  // current to threads; all work in it runs in the primary context
};

}  // namespace gpurota::sim
