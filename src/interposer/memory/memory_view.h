// The figures that a program is told of the memory of a GPU of its lease, by CUDA and NVML alike.
// Any thread.
#pragma once

#include <cstdint>

namespace gpurota::interposer {

struct MemoryView {
  uint64_t total;  // the limit
  uint64_t free;   // what can really be had now
};

// `total` and `free` are the driver's figures for the whole GPU; never more than these.
MemoryView view_of_slot(int slot, uint64_t total, uint64_t free);

}  // namespace gpurota::interposer
