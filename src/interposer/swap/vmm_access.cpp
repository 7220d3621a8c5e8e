// Access to handles and mappings, and questions about them. In leases whose memory does not move,
// all of these calls go straight to the driver.
#include "interposer/driver/driver.h"
#include "interposer/gate/gated.h"
#include "interposer/swap/virtual_memory.h"

namespace interposer = gpurota::interposer;
using interposer::is_virtual;
using interposer::state;

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc* access, size_t count) {
  GPUROTA_ENTER(cuMemSetAccess, ptr, size, access, count);
  if (!interposer::swapping() || !interposer::virtual_any(state(), {ptr, size})) {
    return real(ptr, size, access, count);
  }
  return interposer::virtual_set_access(state(), {ptr, size}, access, count);
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr ptr) {
  GPUROTA_ENTER(cuMemGetAccess, flags, location, ptr);
  interposer::VirtualFound found;
  if (!interposer::swapping() || flags == nullptr || location == nullptr ||
      !interposer::virtual_find(state(), ptr, &found)) {
    return real(flags, location, ptr);
  }
  const bool known = location->type == CU_MEM_LOCATION_TYPE_DEVICE && location->id >= 0;
  *flags = known && location->id < 32 ? found.access >> (2 * location->id) & 3 : 0;
  return CUDA_SUCCESS;
}

// Refuses addresses that are mapped, because the driver knows no mapping at addresses whose memory
// is evicted.
CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size) {
  GPUROTA_ENTER(cuMemAddressFree, ptr, size);
  if (interposer::swapping() && interposer::virtual_any(state(), {ptr, size})) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return real(ptr, size);
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* out,
                                                CUmemGenericAllocationHandle handle) {
  GPUROTA_ENTER(cuMemGetAllocationPropertiesFromHandle, out, handle);
  if (!is_virtual(handle)) return real(out, handle);
  return interposer::virtual_properties(state(), handle, out);
}
