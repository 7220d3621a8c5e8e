// Queries about an address.
#include "sim/cuda/api.h"
#include "sim/cuda/memory.h"
#include "sim/cuda/pool.h"

#include <iterator>

using gpurota::sim::Allocation;
using gpurota::sim::Call;
using gpurota::sim::Driver;
using Kind = gpurota::sim::Allocation::Kind;

namespace {

template <class T>
CUresult put(void* out, T value) {
  *static_cast<T*>(out) = value;
  return CUDA_SUCCESS;
}

unsigned handle_types(const Allocation& allocation) {
  return allocation.exportable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0;
}

struct Range {
  CUdeviceptr start;
  std::size_t size;
};

// The range that the driver reports for an allocation: for mapped memory, the whole reservation.
Range range_of(const Driver& driver, const Allocation& allocation) {
  if (allocation.kind == Kind::kMapped) {
    const auto& [start, size] = *std::prev(driver.reservations.upper_bound(allocation.base));
    return {start, size};
  }
  return {allocation.base, allocation.size};
}

// The range that the driver mapped as one, which small allocations share.
Range mapping_of(const Allocation& allocation) {
  if (!allocation.on_device() || !allocation.mapping) return {allocation.base, allocation.size};
  return {allocation.base - allocation.mapping_offset, allocation.mapping->size()};
}

CUresult answer(const Driver& driver, const Allocation& allocation, CUdeviceptr address,
                CUpointer_attribute attribute, void* out) {
  const bool on_device = allocation.on_device() && allocation.device >= 0;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return put(out, reinterpret_cast<CUcontext>(
                          allocation.kind == Kind::kPool ? nullptr : allocation.context));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put<unsigned>(out, on_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return put(out, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (on_device && allocation.kind != Kind::kManaged) return CUDA_ERROR_INVALID_VALUE;
      return put<void*>(out, gpurota::sim::host_view(address));
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return put<unsigned char>(out, 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return put<unsigned long long>(out, allocation.id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return put<unsigned char>(out, allocation.kind == Kind::kManaged ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: {
      const int device = allocation.device >= 0          ? allocation.device
                         : allocation.context != nullptr ? allocation.context->device
                                                         : 0;
      return put<int>(out, gpurota::sim::ordinal_of(driver, device));
    }
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return put<unsigned char>(out, allocation.kind == Kind::kLinear ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return put(out, range_of(driver, allocation).start);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put(out, range_of(driver, allocation).size);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return put<unsigned char>(out, 1);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return put(out, handle_types(allocation));
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return put<unsigned char>(out, 0);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return put<unsigned>(out, allocation.access);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return put(out, reinterpret_cast<CUmemoryPool>(allocation.pool));
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return put(out, mapping_of(allocation).size);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return put(out, mapping_of(allocation).start);
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return put<unsigned long long>(out, allocation.id);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

// The answer for an address that the driver does not know: null, zero or none.
CUresult answer_unknown(CUpointer_attribute attribute, void* out) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put<unsigned>(out, 0);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put<int>(out, CU_DEVICE_INVALID);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return put<unsigned char>(out, 0);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return put<unsigned>(out, 0);
    default:
      return put<unsigned long long>(out, 0);
  }
}

}  // namespace

GPUROTA_SIM_API cuPointerGetAttribute(void* out, CUpointer_attribute attribute,
                                      CUdeviceptr address) {
  const Call call;
  if (call.failed()) return call.error();
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto found = call.driver().space.find(address);
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  return answer(call.driver(), *found, address, attribute, out);
}

GPUROTA_SIM_API cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** out,
                                       CUdeviceptr address) {
  const Call call;
  if (call.failed()) return call.error();
  if (count == 0 || attributes == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto found = call.driver().space.find(address);
  for (unsigned i = 0; i < count; ++i) {
    if (found && answer(call.driver(), *found, address, attributes[i], out[i]) == CUDA_SUCCESS) {
      continue;
    }
    const CUresult result = answer_unknown(attributes[i], out[i]);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuPointerSetAttribute(const void* value, CUpointer_attribute attribute,
                                      CUdeviceptr address) {
  const Call call;
  if (call.failed()) return call.error();
  const bool known = call.driver().space.find(address).has_value();
  const bool settable = attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS;
  return value != nullptr && known && settable ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
