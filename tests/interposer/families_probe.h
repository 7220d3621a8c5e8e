// Shared by the two parts of probe_families. charged() is called on the program's own threads.
#pragma once

#include "tests/driver/api.h"

#include <cstddef>

inline constexpr std::size_t kMiB = std::size_t{1} << 20;

// The charge in MiB, computed from cuMemGetInfo.
inline std::size_t charged() {
  std::size_t free = 0, total = 0;
  (void)cuMemGetInfo_v2(&free, &total);
  return (total - free) / kMiB;
}
