// Filling memory with a value of one, two or four bytes.
#include "sim/cuda/stream.h"

using gpurota::sim::SetOp;
using gpurota::sim::StreamCall;

namespace {

CUresult set(CUstream stream, const CUDA_MEMSET_NODE_PARAMS& params, StreamCall::Wait wait) {
  StreamCall call(stream);
  if (call.failed()) return call.error();
  if (params.width == 0 || params.height == 0) return CUDA_SUCCESS;
  return call.submit(SetOp{params}, wait);
}

CUDA_MEMSET_NODE_PARAMS line(CUdeviceptr to, unsigned value, unsigned element, std::size_t count) {
  return {to, 0, value, element, count, 1};
}

}  // namespace

#define GPUROTA_SIM_SET_API(bits, type)                                                         \
  GPUROTA_SIM_STREAM_API(cuMemsetD##bits##_v2, _ptds,                                           \
                         (CUdeviceptr to, type value, std::size_t count), (to, value, count)) { \
    return set(nullptr, line(to, value, bits / 8, count), StreamCall::Wait::kYes);              \
  }                                                                                             \
  GPUROTA_SIM_STREAM_API(cuMemsetD##bits##Async, _ptsz,                                         \
                         (CUdeviceptr to, type value, std::size_t count, CUstream stream),      \
                         (to, value, count, stream)) {                                          \
    return set(stream, line(to, value, bits / 8, count), StreamCall::Wait::kNo);                \
  }                                                                                             \
  GPUROTA_SIM_STREAM_API(                                                                       \
      cuMemsetD2D##bits##_v2, _ptds,                                                            \
      (CUdeviceptr to, std::size_t pitch, type value, std::size_t width, std::size_t height),   \
      (to, pitch, value, width, height)) {                                                      \
    return set(nullptr, {to, pitch, value, bits / 8, width, height}, StreamCall::Wait::kYes);   \
  }                                                                                             \
  GPUROTA_SIM_STREAM_API(cuMemsetD2D##bits##Async, _ptsz,                                       \
                         (CUdeviceptr to, std::size_t pitch, type value, std::size_t width,     \
                          std::size_t height, CUstream stream),                                 \
                         (to, pitch, value, width, height, stream)) {                           \
    return set(stream, {to, pitch, value, bits / 8, width, height}, StreamCall::Wait::kNo);     \
  }

GPUROTA_SIM_SET_API(8, unsigned char)
GPUROTA_SIM_SET_API(16, unsigned short)
GPUROTA_SIM_SET_API(32, unsigned)
