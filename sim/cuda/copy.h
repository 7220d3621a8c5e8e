// Giving copies to streams: shared by the copy functions of all shapes.
#pragma once

#include "sim/cuda/stream.h"

namespace gpurota::sim {

enum class Timing { kSync, kAsync };

// Validates a copy and gives it to a stream. Memory that is not page-locked is handled as the
// driver does: before an asynchronous copy returns, its source has been read and its target
// written.
CUresult give_copy(CUstream stream, CopyOp copy, Timing timing);

inline CopySide device_side(CUdeviceptr address) {
  CopySide side;
  side.address = address;
  return side;
}
inline CopySide host_side(const void* pointer) {
  CopySide side;
  side.address = reinterpret_cast<CUdeviceptr>(pointer);
  side.may_be_host = true;
  return side;
}
inline CopySide any_side(CUdeviceptr address) {
  CopySide side = device_side(address);
  side.may_be_host = true;
  return side;
}
CopyOp linear_copy(const CopySide& to, const CopySide& from, std::size_t bytes);

// A CUDA_MEMCPY3D as an operation; CUDA_ERROR_INVALID_VALUE if its parameters are invalid.
CUresult shaped_copy(Driver& driver, const CUDA_MEMCPY3D& asked, CopyOp* out);

}  // namespace gpurota::sim
