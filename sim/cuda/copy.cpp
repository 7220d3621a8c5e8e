#include "sim/cuda/copy.h"

#include "sim/cuda/array.h"

#include <cstring>
#include <memory>

namespace gpurota::sim {
namespace {

constexpr std::size_t kSnapshotBytes = std::size_t{64} << 10;

bool is_pageable(const Driver& driver, const CopySide& side) {
  return side.array == nullptr && side.may_be_host && !driver.space.find(side.address);
}

CUresult side_of(Driver& driver, CUmemorytype type, const void* host, CUdeviceptr device,
                 CUarray array, CopySide* out) {
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      *out = host_side(host);
      return host == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_MEMORYTYPE_DEVICE:
      *out = device_side(device);
      return CUDA_SUCCESS;
    case CU_MEMORYTYPE_UNIFIED:
      *out = any_side(device);
      return CUDA_SUCCESS;
    case CU_MEMORYTYPE_ARRAY:
      *out = {};
      out->array = driver.arrays.find(array);
      return out->array == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult place(CopySide& side, std::size_t x, std::size_t y, std::size_t z, std::size_t pitch,
               std::size_t height, const CopyOp& copy) {
  side.x = x;
  side.y = y;
  side.z = z;
  if (side.array != nullptr) return CUDA_SUCCESS;
  side.pitch = pitch == 0 ? x + copy.width : pitch;
  side.height = height == 0 ? y + copy.height : height;
  const bool rows_matter = copy.height > 1 || copy.depth > 1;
  if (rows_matter && side.pitch < x + copy.width) return CUDA_ERROR_INVALID_VALUE;
  if (copy.depth > 1 && side.height < y + copy.height) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

}  // namespace

CopyOp linear_copy(const CopySide& to, const CopySide& from, std::size_t bytes) {
  CopyOp copy;
  copy.to = to;
  copy.from = from;
  copy.width = bytes;
  copy.to.pitch = copy.from.pitch = bytes;
  copy.to.height = copy.from.height = 1;
  CUDA_MEMCPY3D& asked = copy.asked;
  asked.srcMemoryType = asked.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  asked.srcDevice = from.address;
  asked.dstDevice = to.address;
  asked.WidthInBytes = bytes;
  asked.Height = asked.Depth = 1;
  return copy;
}

CUresult shaped_copy(Driver& driver, const CUDA_MEMCPY3D& asked, CopyOp* out) {
  out->asked = asked;
  out->width = asked.WidthInBytes;
  out->height = asked.Height;
  out->depth = asked.Depth;
  CUresult result = side_of(driver, asked.srcMemoryType, asked.srcHost, asked.srcDevice,
                            asked.srcArray, &out->from);
  if (result != CUDA_SUCCESS) return result;
  result = side_of(driver, asked.dstMemoryType, asked.dstHost, asked.dstDevice, asked.dstArray,
                   &out->to);
  if (result != CUDA_SUCCESS) return result;
  result = place(out->from, asked.srcXInBytes, asked.srcY, asked.srcZ, asked.srcPitch,
                 asked.srcHeight, *out);
  if (result != CUDA_SUCCESS) return result;
  return place(out->to, asked.dstXInBytes, asked.dstY, asked.dstZ, asked.dstPitch, asked.dstHeight,
               *out);
}

CUresult give_copy(CUstream handle, CopyOp copy, Timing timing) {
  StreamCall call(handle);
  if (call.failed()) return call.error();
  if (copy.width == 0 || copy.height == 0 || copy.depth == 0) return CUDA_SUCCESS;
  if (timing == Timing::kSync) return call.submit(std::move(copy), StreamCall::Wait::kYes);
  if (call.stream().capture) return call.submit(std::move(copy), StreamCall::Wait::kNo);
  Driver& driver = call.driver();
  const bool is_linear = copy.height == 1 && copy.depth == 1 && copy.from.array == nullptr;
  if (is_pageable(driver, copy.from) && is_linear && copy.width <= kSnapshotBytes &&
      !is_pageable(driver, copy.to)) {
    CopyOp later = copy;
    auto snapshot = std::make_shared<std::vector<std::byte>>(copy.width);
    std::memcpy(snapshot->data(), host_view(copy.from.address + copy.from.x), copy.width);
    later.from.address = reinterpret_cast<CUdeviceptr>(snapshot->data());
    later.from.x = 0;
    later.snapshot = std::move(snapshot);
    return call.submit(std::move(later), StreamCall::Wait::kNo);
  }
  const bool waits = is_pageable(driver, copy.from) || is_pageable(driver, copy.to);
  return call.submit(std::move(copy), waits ? StreamCall::Wait::kLikeSync : StreamCall::Wait::kNo);
}

}  // namespace gpurota::sim
