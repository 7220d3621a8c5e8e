// Page-locked host memory, allocated or registered.
#include "sim/cuda/api.h"
#include "sim/cuda/memory.h"

using gpurota::sim::Allocation;
using gpurota::sim::ContextCall;
using Kind = gpurota::sim::Allocation::Kind;

namespace {

constexpr unsigned kHostAllocFlags =
    CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
constexpr unsigned kRegisterFlags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                    CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;

CUdeviceptr address_of(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

// Frees or unregisters the host memory of `kind` that starts at `pointer`.
CUresult give_back(const void* pointer, Kind kind, CUresult if_unknown, const char* function) {
  ContextCall call(function);
  if (call.failed()) return call.error();
  if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto found = call.driver().space.find(address_of(pointer));
  if (!found || found->base != address_of(pointer) || found->kind != kind) return if_unknown;
  call.driver().wait_all(call.driver().tails(*call.context()), call.lock());
  return call.driver().space.remove(address_of(pointer)) ? CUDA_SUCCESS : if_unknown;
}

}  // namespace

GPUROTA_SIM_API cuMemHostAlloc(void** out, std::size_t bytes, unsigned flags) {
  const ContextCall call;
  if (call.failed()) return call.error();
  if (out == nullptr || (flags & ~kHostAllocFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  return gpurota::sim::allocate_host(call.driver(), *call.context(), bytes, flags, out);
}

GPUROTA_SIM_API cuMemAllocHost_v2(void** out, std::size_t bytes) {
  return cuMemHostAlloc(out, bytes, 0);
}

GPUROTA_SIM_API cuMemFreeHost(void* pointer) {
  return give_back(pointer, Kind::kHost, CUDA_ERROR_INVALID_VALUE, __func__);
}

GPUROTA_SIM_API cuMemHostRegister_v2(void* pointer, std::size_t bytes, unsigned flags) {
  const ContextCall call;
  if (call.failed()) return call.error();
  if (pointer == nullptr || bytes == 0 || (flags & ~kRegisterFlags) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (call.driver().space.overlaps(address_of(pointer), bytes)) {
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  }
  Allocation allocation;
  allocation.base = address_of(pointer);
  allocation.size = bytes;
  allocation.kind = Kind::kRegistered;
  allocation.context = call.context();
  allocation.id = call.machine().next_id();
  allocation.flags = flags;
  call.driver().space.add(allocation);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuMemHostRegister(void* pointer, std::size_t bytes, unsigned flags) {
  return cuMemHostRegister_v2(pointer, bytes, flags);
}

GPUROTA_SIM_API cuMemHostUnregister(void* pointer) {
  return give_back(pointer, Kind::kRegistered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, __func__);
}

GPUROTA_SIM_API cuMemHostGetDevicePointer_v2(CUdeviceptr* out, void* pointer, unsigned flags) {
  const ContextCall call;
  if (call.failed()) return call.error();
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const auto found = call.driver().space.find(address_of(pointer));
  if (!found || found->on_device()) return CUDA_ERROR_INVALID_VALUE;
  *out = address_of(pointer);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuMemHostGetFlags(unsigned* flags, void* pointer) {
  const ContextCall call;
  if (call.failed()) return call.error();
  const auto found = call.driver().space.find(address_of(pointer));
  if (flags == nullptr || !found || found->kind != Kind::kHost) return CUDA_ERROR_INVALID_VALUE;
  *flags = found->flags | CU_MEMHOSTALLOC_DEVICEMAP;
  return CUDA_SUCCESS;
}
