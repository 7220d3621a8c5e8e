// External memory. Only memory that this simulator has exported as a descriptor can be imported: no
// other graphics API is simulated.
#include "abi/cuda_external.h"
#include "base/fd.h"
#include "sim/cuda/api.h"
#include "sim/cuda/array.h"
#include "sim/cuda/external.h"

#include <unistd.h>

using gpurota::sim::Allocation;
using gpurota::sim::ContextCall;
using gpurota::sim::ExternalMemory;
using gpurota::sim::kDevicePage;
using gpurota::sim::Mapping;
using gpurota::sim::Physical;

namespace {

bool fits(unsigned long long offset, unsigned long long size, const Physical& memory) {
  return size > 0 && offset <= memory.size() && size <= memory.size() - offset;
}

// A call about imported memory.
class ExternalCall : public ContextCall {
 public:
  explicit ExternalCall(CUexternalMemory handle) {
    if (failed()) return;
    external_ = driver_.externals.find(handle);
    if (external_ == nullptr) error_ = CUDA_ERROR_INVALID_HANDLE;
  }
  ExternalMemory& external() const { return *external_; }

 private:
  ExternalMemory* external_ = nullptr;
};

}  // namespace

GPUROTA_SIM_API cuImportExternalMemory(CUexternalMemory* out,
                                       const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* given) {
  const ContextCall call;
  if (call.failed()) return call.error();
  if (out == nullptr || given == nullptr || given->type < 1 ||
      given->type > CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // Handle types of Windows, and of other APIs.
  if (given->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD) return CUDA_ERROR_NOT_SUPPORTED;
  if ((given->flags & ~unsigned{CUDA_EXTERNAL_MEMORY_DEDICATED}) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto memory = Physical::import(call.machine(), given->handle.fd);
  if (!memory || memory->device() < 0 || !fits(0, given->size, *memory)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  ::close(given->handle.fd);  // the driver owns the descriptor from here on
  auto made = std::make_unique<ExternalMemory>();
  made->context = call.context();
  made->memory = std::move(memory);
  *out = reinterpret_cast<CUexternalMemory>(call.driver().externals.add(std::move(made)));
  return CUDA_SUCCESS;
}

// The caller frees the buffer with cuMemFree.
GPUROTA_SIM_API cuExternalMemoryGetMappedBuffer(CUdeviceptr* out, CUexternalMemory handle,
                                                const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* wanted) {
  const ExternalCall call(handle);
  if (call.failed()) return call.error();
  const auto& memory = call.external().memory;
  if (out == nullptr || wanted == nullptr || wanted->flags != 0 ||
      !fits(wanted->offset, wanted->size, *memory)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Allocation allocation;
  allocation.mapping = Mapping::create(memory, kDevicePage);
  if (!allocation.mapping) return CUDA_ERROR_MAP_FAILED;
  allocation.mapping_offset = wanted->offset;
  allocation.base = reinterpret_cast<CUdeviceptr>(allocation.mapping->address() + wanted->offset);
  allocation.size = wanted->size;
  allocation.kind = Allocation::Kind::kExternal;
  allocation.context = call.context();
  allocation.device = memory->device();
  allocation.id = call.machine().next_id();
  call.driver().space.add(allocation);
  *out = allocation.base;
  return CUDA_SUCCESS;
}

// The caller destroys the array with cuMipmappedArrayDestroy.
GPUROTA_SIM_API cuExternalMemoryGetMappedMipmappedArray(
    CUmipmappedArray* out, CUexternalMemory handle,
    const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC* wanted) {
  const ExternalCall call(handle);
  if (call.failed()) return call.error();
  if (out == nullptr || wanted == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if ((wanted->arrayDesc.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto& memory = call.external().memory;
  const auto map = [&](std::size_t bytes) {
    return fits(wanted->offset, bytes, *memory) ? Mapping::create(memory, kDevicePage) : nullptr;
  };
  const gpurota::sim::MipmapShape shape{wanted->arrayDesc, wanted->numLevels, wanted->offset};
  const CUresult made = gpurota::sim::create_mipmap(call.driver(), call.context(), shape, map, out);
  return made == CUDA_ERROR_OUT_OF_MEMORY ? CUDA_ERROR_INVALID_VALUE : made;
}

GPUROTA_SIM_API cuDestroyExternalMemory(CUexternalMemory handle) {
  const ExternalCall call(handle);
  if (call.failed()) return call.error();
  (void)call.driver().externals.take(&call.external());
  return CUDA_SUCCESS;
}
