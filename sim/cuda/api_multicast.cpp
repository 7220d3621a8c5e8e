// Multicast objects. The simulator only records the memory bound to one, and keeps that memory
// until it is unbound. A multicast object cannot be mapped, so nothing is ever written through one,
// and the device attribute says that multicast is not supported.
#include "sim/cuda/api.h"
#include "sim/cuda/memory.h"
#include "sim/cuda/vmm.h"

#include <algorithm>

using gpurota::sim::Call;
using gpurota::sim::Driver;
using gpurota::sim::kDevicePage;
using gpurota::sim::MemoryHandle;
using gpurota::sim::Multicast;
using gpurota::sim::Physical;
using Kind = gpurota::sim::Allocation::Kind;

namespace {

Multicast* find_multicast(const Driver& driver, CUmemGenericAllocationHandle handle) {
  const MemoryHandle* found = driver.handles.find(handle);
  return found != nullptr ? found->multicast.get() : nullptr;
}

bool fits(std::size_t offset, std::size_t size, std::size_t whole) {
  return size != 0 && offset % kDevicePage == 0 && size % kDevicePage == 0 && offset <= whole &&
         size <= whole - offset;
}

// Fails until all devices have been added; a real driver waits for them.
CUresult bind(Multicast* object, std::size_t offset, const std::shared_ptr<Physical>& memory,
              std::size_t size) {
  if (object == nullptr || !fits(offset, size, object->size) ||
      object->devices.size() != object->team) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const int device = memory->device();
  if (std::find(object->devices.begin(), object->devices.end(), device) == object->devices.end()) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  for (const Multicast::Binding& b : object->bindings) {
    if (b.device == device && offset < b.offset + b.size && b.offset < offset + size) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  object->bindings.push_back({device, offset, size, memory});
  return CUDA_SUCCESS;
}

}  // namespace

GPUROTA_SIM_API cuMulticastGetGranularity(std::size_t* granularity,
                                          const CUmulticastObjectProp* properties, int option) {
  const Call call;
  if (call.failed()) return call.error();
  if (granularity == nullptr || properties == nullptr || option < 0 || option > 1) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *granularity = kDevicePage;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuMulticastCreate(CUmemGenericAllocationHandle* out,
                                  const CUmulticastObjectProp* properties) {
  const Call call;
  if (call.failed()) return call.error();
  if (out == nullptr || properties == nullptr || properties->numDevices == 0 ||
      properties->flags != 0 || !fits(0, properties->size, properties->size)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_SUPPORTED;
  auto made = std::make_unique<MemoryHandle>();
  made->multicast = std::make_shared<Multicast>();
  made->multicast->size = properties->size;
  made->multicast->team = properties->numDevices;
  auto* raw = call.driver().handles.add(std::move(made));
  *out = reinterpret_cast<CUmemGenericAllocationHandle>(raw);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice ordinal) {
  const Call call;
  if (call.failed()) return call.error();
  Multicast* object = find_multicast(call.driver(), handle);
  if (object == nullptr || object->devices.size() == object->team) return CUDA_ERROR_INVALID_VALUE;
  const int device = call.driver().machine_device(ordinal);
  if (device < 0) return CUDA_ERROR_INVALID_DEVICE;
  const auto& known = object->devices;
  if (std::find(known.begin(), known.end(), device) != known.end()) return CUDA_ERROR_INVALID_VALUE;
  object->devices.push_back(device);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuMulticastBindMem(CUmemGenericAllocationHandle handle, std::size_t offset,
                                   CUmemGenericAllocationHandle memory, std::size_t memory_offset,
                                   std::size_t size, unsigned long long flags) {
  const Call call;
  if (call.failed()) return call.error();
  const MemoryHandle* found = call.driver().handles.find(memory);
  if (found == nullptr || !found->memory || flags != 0 ||
      !fits(memory_offset, size, found->memory->size())) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return bind(find_multicast(call.driver(), handle), offset, found->memory, size);
}

GPUROTA_SIM_API cuMulticastBindAddr(CUmemGenericAllocationHandle handle, std::size_t offset,
                                    CUdeviceptr address, std::size_t size,
                                    unsigned long long flags) {
  const Call call;
  if (call.failed()) return call.error();
  const auto found = call.driver().space.find(address);
  if (!found || found->kind != Kind::kMapped || flags != 0 ||
      !fits(address - found->base, size, found->size)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return bind(find_multicast(call.driver(), handle), offset, found->mapping->memory_ptr(), size);
}

GPUROTA_SIM_API cuMulticastUnbind(CUmemGenericAllocationHandle handle, CUdevice ordinal,
                                  std::size_t offset, std::size_t size) {
  const Call call;
  if (call.failed()) return call.error();
  Multicast* object = find_multicast(call.driver(), handle);
  const int device = call.driver().machine_device(ordinal);
  if (object == nullptr || device < 0) return CUDA_ERROR_INVALID_VALUE;
  auto& all = object->bindings;
  const auto found = std::find_if(all.begin(), all.end(), [&](const Multicast::Binding& b) {
    return b.device == device && b.offset == offset && b.size == size;
  });
  if (found == all.end()) return CUDA_ERROR_INVALID_VALUE;
  all.erase(found);
  return CUDA_SUCCESS;
}
