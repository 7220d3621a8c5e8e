// The memory figures that a program sees for a GPU of its lease, through CUDA and NVML alike. Any
// thread.
#pragma once

#include <cstdint>

namespace gpurota::interposer {

struct MemoryView {
  uint64_t total;  // the limit
  uint64_t free;   // what the program can allocate now
};

// `total` and `free` are the driver's figures for the whole GPU. Except in a swap lease, the result
// never exceeds them.
MemoryView view_of_slot(int slot, uint64_t total, uint64_t free);

}  // namespace gpurota::interposer
