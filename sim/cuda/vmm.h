// Virtual memory management: reservations, and handles of physical memory. Under the driver's lock.
#pragma once

#include "sim/cuda/driver.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace gpurota::sim {

// A multicast object, which keeps the memory bound to it for each of its devices.
struct Multicast {
  struct Binding {
    int device = -1;  // machine index
    std::size_t offset = 0, size = 0;
    std::shared_ptr<Physical> memory;
  };
  std::size_t size = 0;
  unsigned team = 0;  // number of devices it is for
  std::vector<int> devices;
  std::vector<Binding> bindings;
};

// The object of a CUmemGenericAllocationHandle; `references` counts creates, imports and retains.
struct MemoryHandle {
  std::shared_ptr<Physical> memory;      // null for a multicast object
  std::shared_ptr<Multicast> multicast;  // null for memory
  CUmemAllocationProp properties = {};
  unsigned references = 1;
};

}  // namespace gpurota::sim
