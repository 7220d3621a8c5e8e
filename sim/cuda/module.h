// Modules and libraries: images the program loads, and the kernels in them. Under the driver's
// lock.
#pragma once

#include "sim/cuda/driver.h"
#include "sim/cuda/kernel.h"

#include <map>
#include <string>
#include <vector>

namespace gpurota::sim {

// A CUmodule, or (context null) a CUlibrary.
struct Module {
  Context* context = nullptr;
  int device = -1;
  std::uint64_t charged_bytes = 0;
  std::map<std::string, Function*> functions;
};

}  // namespace gpurota::sim
