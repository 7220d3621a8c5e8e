// Advice and prefetching of managed memory. The host always sees the bytes, so these functions only
// check their arguments; a prefetch to a GPU also touches the bytes there.
#include "sim/cuda/stream.h"

using gpurota::sim::Allocation;
using gpurota::sim::Call;
using gpurota::sim::StreamCall;

namespace {

CUresult check_managed(gpurota::sim::Driver& driver, CUdeviceptr address, std::size_t bytes) {
  const auto found = driver.space.find(address);
  if (bytes == 0 || !found || found->kind != Allocation::Kind::kManaged ||
      bytes > found->size - (address - found->base)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult advise(CUdeviceptr address, std::size_t bytes, CUmem_advise advice) {
  const Call call;
  if (call.failed()) return call.error();
  if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return check_managed(call.driver(), address, bytes);
}

CUresult prefetch(CUdeviceptr address, std::size_t bytes, bool to_device, CUstream stream) {
  StreamCall call(stream);
  if (call.failed()) return call.error();
  const CUresult valid = check_managed(call.driver(), address, bytes);
  if (valid != CUDA_SUCCESS) return valid;
  gpurota::sim::Driver& driver = call.driver();
  gpurota::sim::append(driver, call.stream(), [&driver, address, bytes, to_device] {
    const gpurota::sim::Space::Use use(driver.space);
    return to_device ? use.check(address, bytes, false) : CUDA_SUCCESS;
  });
  return CUDA_SUCCESS;
}

}  // namespace

GPUROTA_SIM_API cuMemAdvise(CUdeviceptr address, std::size_t bytes, CUmem_advise advice, CUdevice) {
  return advise(address, bytes, advice);
}

GPUROTA_SIM_API cuMemAdvise_v2(CUdeviceptr address, std::size_t bytes, CUmem_advise advice,
                               CUmemLocation) {
  return advise(address, bytes, advice);
}

GPUROTA_SIM_STREAM_API(cuMemPrefetchAsync, _ptsz,
                       (CUdeviceptr address, std::size_t bytes, CUdevice device, CUstream stream),
                       (address, bytes, device, stream)) {
  return prefetch(address, bytes, device != CU_DEVICE_CPU, stream);
}

GPUROTA_SIM_STREAM_API(cuMemPrefetchAsync_v2, _ptsz,
                       (CUdeviceptr address, std::size_t bytes, CUmemLocation location,
                        unsigned flags, CUstream stream),
                       (address, bytes, location, flags, stream)) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return prefetch(address, bytes, location.type == CU_MEM_LOCATION_TYPE_DEVICE, stream);
}
