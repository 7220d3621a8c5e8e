// Virtual memory management: cuMemAddressReserve, cuMemCreate, cuMemMap and related functions.
#include "sim/cuda/api.h"
#include "sim/cuda/memory.h"
#include "sim/cuda/vmm.h"

#include <algorithm>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using gpurota::sim::Allocation;
using gpurota::sim::Call;
using gpurota::sim::Driver;
using gpurota::sim::host_view;
using gpurota::sim::kDevicePage;
using gpurota::sim::Mapping;
using gpurota::sim::MemoryHandle;
using gpurota::sim::Physical;
using Kind = gpurota::sim::Allocation::Kind;

namespace {

bool is_host(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_HOST ||
         location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
         location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

CUresult check_properties(const Driver& driver, const CUmemAllocationProp* properties) {
  if (properties == nullptr || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  constexpr unsigned kHandles = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  if ((static_cast<unsigned>(properties->requestedHandleTypes) & ~kHandles) != 0) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (is_host(properties->location)) return CUDA_SUCCESS;
  if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
  const bool exists = driver.machine_device(properties->location.id) >= 0;
  return exists ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

bool is_reserved(const Driver& driver, CUdeviceptr address, std::size_t size) {
  const auto next = driver.reservations.upper_bound(address);
  if (next == driver.reservations.begin()) return false;
  const auto& [base, reserved] = *std::prev(next);
  return address - base < reserved && size <= reserved - (address - base);
}

MemoryHandle* find_handle(const Driver& driver, CUmemGenericAllocationHandle handle) {
  return driver.handles.find(handle);
}

CUmemGenericAllocationHandle add_handle(Driver& driver, MemoryHandle made) {
  auto* raw = driver.handles.add(std::make_unique<MemoryHandle>(std::move(made)));
  return reinterpret_cast<CUmemGenericAllocationHandle>(raw);
}

// The mappings that make up [address, address + size) exactly; empty if none do.
std::vector<Allocation> mappings_of(const Driver& driver, CUdeviceptr address, std::size_t size) {
  std::vector<Allocation> parts;
  for (CUdeviceptr at = address; at < address + size;) {
    const auto part = driver.space.find(at);
    if (!part || part->kind != Kind::kMapped || part->base != at) return {};
    at += part->size;
    if (at > address + size) return {};
    parts.push_back(*part);
  }
  return parts;
}

}  // namespace

GPUROTA_SIM_API cuMemGetAllocationGranularity(std::size_t* granularity,
                                              const CUmemAllocationProp* properties,
                                              CUmemAllocationGranularity_flags option) {
  const Call call;
  if (call.failed()) return call.error();
  const CUresult valid = check_properties(call.driver(), properties);
  if (valid != CUDA_SUCCESS) return valid;
  if (granularity == nullptr || option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *granularity = kDevicePage;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuMemAddressReserve(CUdeviceptr* out, std::size_t size, std::size_t alignment,
                                    CUdeviceptr wished, unsigned long long flags) {
  const Call call;
  if (call.failed()) return call.error();
  const bool power_of_two = (alignment & (alignment - 1)) == 0;
  if (out == nullptr || size == 0 || size % kDevicePage != 0 || !power_of_two || flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::byte* hint = wished % kDevicePage == 0 ? host_view(wished) : nullptr;
  std::byte* address =
      gpurota::sim::reserve_addresses(size, std::max(alignment, kDevicePage), hint);
  if (address == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = reinterpret_cast<CUdeviceptr>(address);
  call.driver().reservations[*out] = size;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuMemAddressFree(CUdeviceptr address, std::size_t size) {
  const Call call;
  if (call.failed()) return call.error();
  const auto found = call.driver().reservations.find(address);
  if (found == call.driver().reservations.end() || found->second != size) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (call.driver().space.overlaps(address, size)) return CUDA_ERROR_INVALID_VALUE;
  call.driver().reservations.erase(found);
  ::munmap(host_view(address), size);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuMemCreate(CUmemGenericAllocationHandle* out, std::size_t size,
                            const CUmemAllocationProp* properties, unsigned long long flags) {
  const Call call;
  if (call.failed()) return call.error();
  const CUresult valid = check_properties(call.driver(), properties);
  if (valid != CUDA_SUCCESS) return valid;
  if (out == nullptr || flags != 0 || size == 0 || size % kDevicePage != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const bool exportable = properties->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE;
  const int device =
      is_host(properties->location) ? -1 : call.driver().machine_device(properties->location.id);
  MemoryHandle handle;
  handle.properties = *properties;
  handle.memory =
      Physical::create(call.machine(), device, size,
                       exportable ? Physical::Sharing::kExportable : Physical::Sharing::kPrivate);
  if (!handle.memory) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = add_handle(call.driver(), std::move(handle));
  return CUDA_SUCCESS;
}

// Releases the handle; the memory lives on while it is mapped.
GPUROTA_SIM_API cuMemRelease(CUmemGenericAllocationHandle handle) {
  const Call call;
  if (call.failed()) return call.error();
  MemoryHandle* found = find_handle(call.driver(), handle);
  if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (--found->references == 0) (void)call.driver().handles.take(found);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuMemMap(CUdeviceptr address, std::size_t size, std::size_t offset,
                         CUmemGenericAllocationHandle handle, unsigned long long flags) {
  const Call call;
  if (call.failed()) return call.error();
  Driver& driver = call.driver();
  const MemoryHandle* found = find_handle(driver, handle);
  if (found == nullptr || flags != 0 || size == 0 || size % kDevicePage != 0 ||
      offset % kDevicePage != 0 || address % kDevicePage != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!found->memory) return CUDA_ERROR_NOT_SUPPORTED;
  const std::size_t whole = found->memory->size();
  if (offset > whole || size > whole - offset) return CUDA_ERROR_INVALID_VALUE;
  if (!is_reserved(driver, address, size)) return CUDA_ERROR_INVALID_VALUE;
  if (driver.space.overlaps(address, size)) return CUDA_ERROR_INVALID_VALUE;
  Allocation allocation;
  allocation.mapping = Mapping::create_at(found->memory, offset, host_view(address), size);
  if (!allocation.mapping) return CUDA_ERROR_OUT_OF_MEMORY;
  allocation.base = address;
  allocation.size = size;
  allocation.kind = Kind::kMapped;
  allocation.device = found->memory->device();
  allocation.id = call.machine().next_id();
  allocation.access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  allocation.exportable = found->properties.requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE;
  allocation.properties = found->properties;
  driver.space.add(allocation);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuMemUnmap(CUdeviceptr address, std::size_t size) {
  const Call call;
  if (call.failed()) return call.error();
  const auto parts = mappings_of(call.driver(), address, size);
  if (parts.empty()) {
    // A reserved range with nothing mapped in it: driver 580 reports success.
    const bool nothing = !call.driver().space.overlaps(address, size);
    return nothing && is_reserved(call.driver(), address, size) ? CUDA_SUCCESS
                                                                : CUDA_ERROR_INVALID_VALUE;
  }
  for (const Allocation& part : parts) (void)call.driver().space.remove(part.base);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuMemSetAccess(CUdeviceptr address, std::size_t size,
                               const CUmemAccessDesc* descriptions, std::size_t count) {
  const Call call;
  if (call.failed()) return call.error();
  if (descriptions == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  const auto parts = mappings_of(call.driver(), address, size);
  if (parts.empty()) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    const CUmemLocation& location = descriptions[i].location;
    if (location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
      if (is_host(location)) continue;
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (call.driver().machine_device(location.id) < 0) return CUDA_ERROR_INVALID_DEVICE;
  }
  for (const Allocation& part : parts) {
    call.driver().space.update(part.base, [&](Allocation& allocation) {
      for (std::size_t i = 0; i < count; ++i) {
        allocation.access_by[descriptions[i].location.id] = descriptions[i].flags;
      }
      allocation.access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
      for (const auto& [ordinal, access] : allocation.access_by) {
        allocation.access = std::max(allocation.access, static_cast<unsigned>(access));
      }
    });
  }
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                               CUdeviceptr address) {
  const Call call;
  if (call.failed()) return call.error();
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto found = call.driver().space.find(address);
  if (!found || found->kind != Kind::kMapped) return CUDA_ERROR_INVALID_VALUE;
  const auto access = found->access_by.find(location->id);
  *flags = access == found->access_by.end()
               ? 0U
               : static_cast<unsigned long long>(static_cast<unsigned>(access->second));
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* out, void* address) {
  const Call call;
  if (call.failed()) return call.error();
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto found = call.driver().space.find(reinterpret_cast<CUdeviceptr>(address));
  if (!found || found->kind != Kind::kMapped) return CUDA_ERROR_INVALID_VALUE;
  for (MemoryHandle* handle : call.driver().handles.select(
           [&](const MemoryHandle& h) { return h.memory == found->mapping->memory_ptr(); })) {
    ++handle->references;
    *out = reinterpret_cast<CUmemGenericAllocationHandle>(handle);
    return CUDA_SUCCESS;
  }
  MemoryHandle handle;  // all earlier handles of the memory were released: make a new one
  handle.memory = found->mapping->memory_ptr();
  handle.properties = found->properties;
  *out = add_handle(call.driver(), std::move(handle));
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* out,
                                                       CUmemGenericAllocationHandle handle) {
  const Call call;
  if (call.failed()) return call.error();
  const MemoryHandle* found = find_handle(call.driver(), handle);
  if (out == nullptr || found == nullptr || !found->memory) return CUDA_ERROR_INVALID_VALUE;
  *out = found->properties;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle,
                                             CUmemAllocationHandleType type,
                                             unsigned long long flags) {
  const Call call;
  if (call.failed()) return call.error();
  const MemoryHandle* found = find_handle(call.driver(), handle);
  const bool may = found != nullptr && found->memory &&
                   type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR &&
                   found->properties.requestedHandleTypes == type;
  if (out == nullptr || flags != 0 || !may) return CUDA_ERROR_INVALID_VALUE;
  const int fd = found->memory->export_descriptor();
  if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *static_cast<int*>(out) = fd;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* out, void* shared,
                                               CUmemAllocationHandleType type) {
  const Call call;
  if (call.failed()) return call.error();
  if (out == nullptr || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const int fd = static_cast<int>(reinterpret_cast<std::intptr_t>(shared));
  MemoryHandle handle;
  handle.memory = Physical::import(call.machine(), fd);
  if (!handle.memory) return CUDA_ERROR_INVALID_VALUE;
  handle.properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  handle.properties.requestedHandleTypes = type;
  const int device = handle.memory->device();
  if (device >= 0) {
    handle.properties.location = {CU_MEM_LOCATION_TYPE_DEVICE,
                                  gpurota::sim::ordinal_of(call.driver(), device)};
  } else {
    handle.properties.location = {CU_MEM_LOCATION_TYPE_HOST, 0};
  }
  *out = add_handle(call.driver(), std::move(handle));
  return CUDA_SUCCESS;
}
