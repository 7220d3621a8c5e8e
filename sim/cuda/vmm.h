// Virtual memory management: reservations, handles of physical memory. Under the driver's lock.
#pragma once

#include "sim/cuda/driver.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace gpurota::sim {

// A multicast object: memory of each of its devices, which it keeps.
struct Multicast {
  struct Binding {
    int device = -1;  // machine index
    std::size_t offset = 0, size = 0;
    std::shared_ptr<Physical> memory;
  };
  std::size_t size = 0;
  unsigned team = 0;  // how many devices it is for
  std::vector<int> devices;
  std::vector<Binding> bindings;
};

// The object of a CUmemGenericAllocationHandle; `references` counts create, import and retain.
struct MemoryHandle {
  std::shared_ptr<Physical> memory;      // null: a multicast object
  std::shared_ptr<Multicast> multicast;  // null: memory
  CUmemAllocationProp properties = {};
  unsigned references = 1;
};

}  // namespace gpurota::sim
