// Copies of plain ranges: between host, devices, peers and arrays in linear form.
#include "sim/cuda/array.h"
#include "sim/cuda/copy.h"

using gpurota::sim::any_side;
using gpurota::sim::ArrayMemory;
using gpurota::sim::Call;
using gpurota::sim::CopyOp;
using gpurota::sim::CopySide;
using gpurota::sim::device_side;
using gpurota::sim::give_copy;
using gpurota::sim::host_side;
using gpurota::sim::linear_copy;
using gpurota::sim::Timing;

namespace {

// A range of an array, as a byte offset from the array's start; the range must lie within one row.
CUresult array_side(CUarray handle, std::size_t offset, std::size_t bytes, CopySide* out) {
  const Call call;
  if (call.failed()) return call.error();
  ArrayMemory* array = call.driver().arrays.find(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (offset > array->pitch() || bytes > array->pitch() - offset) return CUDA_ERROR_INVALID_VALUE;
  *out = {};
  out->array = array;
  out->x = offset;
  return CUDA_SUCCESS;
}

CUresult copy_array(CUarray to, std::size_t to_offset, const CopySide* to_plain, CUarray from,
                    std::size_t from_offset, const CopySide* from_plain, std::size_t bytes,
                    Timing timing, CUstream stream) {
  CopySide target, source;
  CUresult result = CUDA_SUCCESS;
  if (to_plain != nullptr) {
    target = *to_plain;
  } else {
    result = array_side(to, to_offset, bytes, &target);
  }
  if (result != CUDA_SUCCESS) return result;
  if (from_plain != nullptr) {
    source = *from_plain;
  } else {
    result = array_side(from, from_offset, bytes, &source);
  }
  if (result != CUDA_SUCCESS) return result;
  return give_copy(stream, linear_copy(target, source, bytes), timing);
}

}  // namespace

GPUROTA_SIM_STREAM_API(cuMemcpy, _ptds, (CUdeviceptr to, CUdeviceptr from, std::size_t bytes),
                       (to, from, bytes)) {
  return give_copy(nullptr, linear_copy(any_side(to), any_side(from), bytes), Timing::kSync);
}

GPUROTA_SIM_STREAM_API(cuMemcpyAsync, _ptsz,
                       (CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream),
                       (to, from, bytes, stream)) {
  return give_copy(stream, linear_copy(any_side(to), any_side(from), bytes), Timing::kAsync);
}

GPUROTA_SIM_STREAM_API(cuMemcpyHtoD_v2, _ptds,
                       (CUdeviceptr to, const void* from, std::size_t bytes), (to, from, bytes)) {
  return give_copy(nullptr, linear_copy(device_side(to), host_side(from), bytes), Timing::kSync);
}

GPUROTA_SIM_STREAM_API(cuMemcpyHtoDAsync_v2, _ptsz,
                       (CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream),
                       (to, from, bytes, stream)) {
  return give_copy(stream, linear_copy(device_side(to), host_side(from), bytes), Timing::kAsync);
}

GPUROTA_SIM_STREAM_API(cuMemcpyDtoH_v2, _ptds, (void* to, CUdeviceptr from, std::size_t bytes),
                       (to, from, bytes)) {
  return give_copy(nullptr, linear_copy(host_side(to), device_side(from), bytes), Timing::kSync);
}

GPUROTA_SIM_STREAM_API(cuMemcpyDtoHAsync_v2, _ptsz,
                       (void* to, CUdeviceptr from, std::size_t bytes, CUstream stream),
                       (to, from, bytes, stream)) {
  return give_copy(stream, linear_copy(host_side(to), device_side(from), bytes), Timing::kAsync);
}

GPUROTA_SIM_STREAM_API(cuMemcpyDtoD_v2, _ptds,
                       (CUdeviceptr to, CUdeviceptr from, std::size_t bytes), (to, from, bytes)) {
  return give_copy(nullptr, linear_copy(device_side(to), device_side(from), bytes), Timing::kSync);
}

GPUROTA_SIM_STREAM_API(cuMemcpyDtoDAsync_v2, _ptsz,
                       (CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream),
                       (to, from, bytes, stream)) {
  return give_copy(stream, linear_copy(device_side(to), device_side(from), bytes), Timing::kAsync);
}

GPUROTA_SIM_STREAM_API(cuMemcpyPeer, _ptds,
                       (CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                        CUcontext from_context, std::size_t bytes),
                       (to, to_context, from, from_context, bytes)) {
  if (to_context == nullptr || from_context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return give_copy(nullptr, linear_copy(device_side(to), device_side(from), bytes), Timing::kSync);
}

GPUROTA_SIM_STREAM_API(cuMemcpyPeerAsync, _ptsz,
                       (CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                        CUcontext from_context, std::size_t bytes, CUstream stream),
                       (to, to_context, from, from_context, bytes, stream)) {
  if (to_context == nullptr || from_context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return give_copy(stream, linear_copy(device_side(to), device_side(from), bytes), Timing::kAsync);
}

GPUROTA_SIM_STREAM_API(cuMemcpyDtoA_v2, _ptds,
                       (CUarray to, std::size_t offset, CUdeviceptr from, std::size_t bytes),
                       (to, offset, from, bytes)) {
  const CopySide source = device_side(from);
  return copy_array(to, offset, nullptr, nullptr, 0, &source, bytes, Timing::kSync, nullptr);
}

GPUROTA_SIM_STREAM_API(cuMemcpyAtoD_v2, _ptds,
                       (CUdeviceptr to, CUarray from, std::size_t offset, std::size_t bytes),
                       (to, from, offset, bytes)) {
  const CopySide target = device_side(to);
  return copy_array(nullptr, 0, &target, from, offset, nullptr, bytes, Timing::kSync, nullptr);
}

GPUROTA_SIM_STREAM_API(cuMemcpyHtoA_v2, _ptds,
                       (CUarray to, std::size_t offset, const void* from, std::size_t bytes),
                       (to, offset, from, bytes)) {
  const CopySide source = host_side(from);
  return copy_array(to, offset, nullptr, nullptr, 0, &source, bytes, Timing::kSync, nullptr);
}

GPUROTA_SIM_STREAM_API(cuMemcpyAtoH_v2, _ptds,
                       (void* to, CUarray from, std::size_t offset, std::size_t bytes),
                       (to, from, offset, bytes)) {
  const CopySide target = host_side(to);
  return copy_array(nullptr, 0, &target, from, offset, nullptr, bytes, Timing::kSync, nullptr);
}

GPUROTA_SIM_STREAM_API(cuMemcpyAtoA_v2, _ptds,
                       (CUarray to, std::size_t to_offset, CUarray from, std::size_t from_offset,
                        std::size_t bytes),
                       (to, to_offset, from, from_offset, bytes)) {
  return copy_array(to, to_offset, nullptr, from, from_offset, nullptr, bytes, Timing::kSync,
                    nullptr);
}

GPUROTA_SIM_STREAM_API(cuMemcpyHtoAAsync_v2, _ptsz,
                       (CUarray to, std::size_t offset, const void* from, std::size_t bytes,
                        CUstream stream),
                       (to, offset, from, bytes, stream)) {
  const CopySide source = host_side(from);
  return copy_array(to, offset, nullptr, nullptr, 0, &source, bytes, Timing::kAsync, stream);
}

GPUROTA_SIM_STREAM_API(cuMemcpyAtoHAsync_v2, _ptsz,
                       (void* to, CUarray from, std::size_t offset, std::size_t bytes,
                        CUstream stream),
                       (to, from, offset, bytes, stream)) {
  const CopySide target = host_side(to);
  return copy_array(nullptr, 0, &target, from, offset, nullptr, bytes, Timing::kAsync, stream);
}

GPUROTA_SIM_STREAM_API(cuMemcpyBatchAsync_v2, _ptsz,
                       (CUdeviceptr * to, CUdeviceptr* from, std::size_t* bytes, std::size_t count,
                        CUmemcpyAttributes* attributes, std::size_t* indices,
                        std::size_t attribute_count, CUstream stream),
                       (to, from, bytes, count, attributes, indices, attribute_count, stream)) {
  const bool has_attributes = attributes != nullptr && indices != nullptr && attribute_count > 0;
  if (to == nullptr || from == nullptr || bytes == nullptr || count == 0 || !has_attributes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // CUDA promises no order among the copies of a batch; the simulator copies in the order given.
  for (std::size_t i = 0; i < count; ++i) {
    const CopyOp copy = linear_copy(any_side(to[i]), any_side(from[i]), bytes[i]);
    const CUresult result = give_copy(stream, copy, Timing::kAsync);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

GPUROTA_SIM_STREAM_API(cuMemcpyBatchAsync, _ptsz,
                       (CUdeviceptr * to, CUdeviceptr* from, std::size_t* bytes, std::size_t count,
                        CUmemcpyAttributes* attributes, std::size_t* indices,
                        std::size_t attribute_count, std::size_t* failed, CUstream stream),
                       (to, from, bytes, count, attributes, indices, attribute_count, failed,
                        stream)) {
  if (failed != nullptr) *failed = SIZE_MAX;
  return cuMemcpyBatchAsync_v2(to, from, bytes, count, attributes, indices, attribute_count,
                               stream);
}
