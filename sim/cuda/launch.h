// Turns the arguments of a launch, or of a kernel node, into an operation. Under the driver's lock.
#pragma once

#include "sim/cuda/kernel.h"

namespace gpurota::sim {

struct LaunchShape {
  unsigned grid[3], block[3], shared_bytes;
};

CUresult make_kernel(const LaunchShape& shape, Function* function, void** params, void** extra,
                     KernelOp* out);

}  // namespace gpurota::sim
