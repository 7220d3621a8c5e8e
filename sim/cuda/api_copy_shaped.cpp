// Two- and three-dimensional copies.
#include "sim/cuda/copy.h"

using gpurota::sim::Call;
using gpurota::sim::CopyOp;
using gpurota::sim::give_copy;
using gpurota::sim::Timing;

namespace {

CUDA_MEMCPY3D as_3d(const CUDA_MEMCPY2D& flat) {
  CUDA_MEMCPY3D asked = {};
  asked.srcXInBytes = flat.srcXInBytes;
  asked.srcY = flat.srcY;
  asked.srcMemoryType = flat.srcMemoryType;
  asked.srcHost = flat.srcHost;
  asked.srcDevice = flat.srcDevice;
  asked.srcArray = flat.srcArray;
  asked.srcPitch = flat.srcPitch;
  asked.dstXInBytes = flat.dstXInBytes;
  asked.dstY = flat.dstY;
  asked.dstMemoryType = flat.dstMemoryType;
  asked.dstHost = flat.dstHost;
  asked.dstDevice = flat.dstDevice;
  asked.dstArray = flat.dstArray;
  asked.dstPitch = flat.dstPitch;
  asked.WidthInBytes = flat.WidthInBytes;
  asked.Height = flat.Height;
  asked.Depth = 1;
  return asked;
}

// The two structs differ in one thing: CUDA_MEMCPY3D_PEER has contexts in the place of reserved
// pointers.
CUDA_MEMCPY3D as_3d(const CUDA_MEMCPY3D_PEER& peer) {
  CUDA_MEMCPY3D asked = {};
  asked.srcXInBytes = peer.srcXInBytes;
  asked.srcY = peer.srcY;
  asked.srcZ = peer.srcZ;
  asked.srcMemoryType = peer.srcMemoryType;
  asked.srcHost = peer.srcHost;
  asked.srcDevice = peer.srcDevice;
  asked.srcArray = peer.srcArray;
  asked.srcPitch = peer.srcPitch;
  asked.srcHeight = peer.srcHeight;
  asked.dstXInBytes = peer.dstXInBytes;
  asked.dstY = peer.dstY;
  asked.dstZ = peer.dstZ;
  asked.dstMemoryType = peer.dstMemoryType;
  asked.dstHost = peer.dstHost;
  asked.dstDevice = peer.dstDevice;
  asked.dstArray = peer.dstArray;
  asked.dstPitch = peer.dstPitch;
  asked.dstHeight = peer.dstHeight;
  asked.WidthInBytes = peer.WidthInBytes;
  asked.Height = peer.Height;
  asked.Depth = peer.Depth;
  return asked;
}

CUresult copy_3d(const CUDA_MEMCPY3D& asked, CUstream stream, Timing timing) {
  CopyOp copy;
  {
    const Call call;
    if (call.failed()) return call.error();
    const CUresult result = gpurota::sim::shaped_copy(call.driver(), asked, &copy);
    if (result != CUDA_SUCCESS) return result;
  }
  return give_copy(stream, std::move(copy), timing);
}

template <class Params>
CUresult copy_as_3d(const Params* params, CUstream stream, Timing timing) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return copy_3d(as_3d(*params), stream, timing);
}

}  // namespace

GPUROTA_SIM_STREAM_API(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D* copy), (copy)) {
  return copy_as_3d(copy, nullptr, Timing::kSync);
}

GPUROTA_SIM_STREAM_API(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D* copy), (copy)) {
  return copy_as_3d(copy, nullptr, Timing::kSync);
}

GPUROTA_SIM_STREAM_API(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D* copy, CUstream stream),
                       (copy, stream)) {
  return copy_as_3d(copy, stream, Timing::kAsync);
}

GPUROTA_SIM_STREAM_API(cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D* copy), (copy)) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : copy_3d(*copy, nullptr, Timing::kSync);
}

GPUROTA_SIM_STREAM_API(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D* copy, CUstream stream),
                       (copy, stream)) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : copy_3d(*copy, stream, Timing::kAsync);
}

GPUROTA_SIM_STREAM_API(cuMemcpy3DPeer, _ptds, (const CUDA_MEMCPY3D_PEER* copy), (copy)) {
  return copy_as_3d(copy, nullptr, Timing::kSync);
}

GPUROTA_SIM_STREAM_API(cuMemcpy3DPeerAsync, _ptsz,
                       (const CUDA_MEMCPY3D_PEER* copy, CUstream stream), (copy, stream)) {
  return copy_as_3d(copy, stream, Timing::kAsync);
}
