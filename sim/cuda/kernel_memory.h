// How the simulator's kernels access the bytes of a GPU: in steps, so that a thread that changes
// the address space never waits long. For the files that implement kernels.
#pragma once

#include "sim/cuda/driver.h"

#include <algorithm>
#include <cstddef>

namespace gpurota::sim {

inline constexpr std::size_t kKernelStep = std::size_t{4} << 20;

// Calls `part(offset, bytes)` for each step of [0, bytes); each call holds the address space's
// lock.
template <class Part>
CUresult in_steps(Driver& driver, std::size_t bytes, const Part& part) {
  for (std::size_t done = 0; done < bytes; done += kKernelStep) {
    const Space::Use use(driver.space);
    const CUresult result = part(use, done, std::min(kKernelStep, bytes - done));
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

// The result of a kernel's access to [address, address + bytes): success, or the error if the
// kernel must not access the range.
inline CUresult touch(const Space::Use& use, CUdeviceptr address, std::size_t bytes) {
  const CUresult result = use.check(address, bytes, false);
  return result == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_ILLEGAL_ADDRESS : result;
}

}  // namespace gpurota::sim
