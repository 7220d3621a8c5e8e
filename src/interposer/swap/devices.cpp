#include "interposer/swap/devices.h"

#include "interposer/account/device.h"
#include "interposer/driver/own_calls.h"
#include "interposer/swap/hasher.h"
#include "interposer/swap/touch.h"

#include <cstring>

namespace gpurota::interposer {
namespace {

constexpr unsigned kPortable = 1;  // CU_MEMHOSTREGISTER_PORTABLE

SwapDevice& device_of(void* self) { return *static_cast<SwapDevice*>(self); }

CUresult reserve(void*, uint64_t size, uint64_t* address) {
  CUdeviceptr at = 0;
  const CUresult result = GPUROTA_OWN(cuMemAddressReserve)(&at, size, 0, 0, 0);
  *address = at;
  return result;
}

CUresult unreserve(void*, uint64_t address, uint64_t size) {
  return GPUROTA_OWN(cuMemAddressFree)(address, size);
}

// Makes host memory on the GPU's NUMA node, or on node 0 if that is unknown. A driver without
// support for nodes makes plain host memory.
CUresult create_hosted(const SwapDevice& device, uint64_t size, uint64_t* handle) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  int node = 0;
  if (GPUROTA_OWN(cuDeviceGetAttribute)(&node, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, device.device) !=
          CUDA_SUCCESS ||
      node < 0) {
    node = 0;
  }
  CUmemGenericAllocationHandle made = 0;
  prop.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, node};
  CUresult result = GPUROTA_OWN(cuMemCreate)(&made, size, &prop, 0);
  if (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_NOT_SUPPORTED) {
    prop.location = {CU_MEM_LOCATION_TYPE_HOST, 0};
    result = GPUROTA_OWN(cuMemCreate)(&made, size, &prop, 0);
  }
  *handle = made;
  return result;
}

CUresult create(void* self, uint64_t size, uint32_t traits, uint64_t* handle) {
  if ((traits & kHosted) != 0) return create_hosted(device_of(self), size, handle);
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(traits & kHandleTypes);
  prop.allocFlags.gpuDirectRDMACapable = (traits & kRdmaCapable) != 0 ? 1 : 0;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_of(self).device};
  CUmemGenericAllocationHandle made = 0;
  const CUresult result = GPUROTA_OWN(cuMemCreate)(&made, size, &prop, 0);
  *handle = made;
  return result;
}

CUresult release(void*, uint64_t handle) { return GPUROTA_OWN(cuMemRelease)(handle); }

CUresult map(void*, uint64_t address, uint64_t size, uint64_t offset, uint64_t handle) {
  return GPUROTA_OWN(cuMemMap)(address, size, offset, handle, 0);
}

CUresult unmap(void*, uint64_t address, uint64_t size) {
  return GPUROTA_OWN(cuMemUnmap)(address, size);
}

CUresult set_access(void* self, uint64_t address, uint64_t size) {
  return give_all_access(state(), device_of(self).device, address, size);
}

CUresult allow(void*, uint64_t address, uint64_t size, uint64_t access) {
  CUmemAccessDesc list[32] = {};
  size_t count = 0;
  for (int d = 0; d < 32; ++d) {
    const auto flags = static_cast<CUmemAccess_flags>(access >> (2 * d) & 3);
    if (flags != 0) list[count++] = {{CU_MEM_LOCATION_TYPE_DEVICE, d}, flags};
  }
  if (count == 0) return CUDA_SUCCESS;
  return GPUROTA_OWN(cuMemSetAccess)(address, size, list, count);
}

CUresult copy_out(void* self, void* host, uint64_t address, uint64_t size) {
  const SwapDevice& device = device_of(self);
  const InContext in(device.context);
  return GPUROTA_OWN(cuMemcpyDtoHAsync_v2)(Outside::ours(), host, address, size, device.stream);
}

CUresult copy_in(void* self, uint64_t address, const void* host, uint64_t size) {
  const SwapDevice& device = device_of(self);
  const InContext in(device.context);
  return GPUROTA_OWN(cuMemcpyHtoDAsync_v2)(Outside::ours(), address, host, size, device.stream);
}

CUresult fence(void* self, uint64_t* token) {
  SwapDevice& device = device_of(self);
  const InContext in(device.context);
  *token = device.last_fence.fetch_add(1) + 1;
  return GPUROTA_OWN(cuEventRecord)(Outside::ours(), device.events[*token % kSwapFences],
                                    device.stream);
}

CUresult wait(void* self, uint64_t token) {
  SwapDevice& device = device_of(self);
  const InContext in(device.context);
  const RelaxedCapture relaxed;
  return GPUROTA_OWN(cuEventSynchronize)(relaxed, Outside::ours(),
                                         device.events[token % kSwapFences]);
}

// Maps huge pages and touches them before they are pinned: both make pinning take a fraction of the
// time. Otherwise the driver would wait, with its lock held, for the kernel to zero pages at about
// 4 GiB/s, and all launches would wait with it. Not inherited, or a fork would copy all of it. Not
// in core dumps, as GPU memory is not.
void* map_host(void*, uint64_t size, bool hurry) {
  ErrnoGuard guard;
  void* p = map_memory(size, MADV_DONTFORK);
  if (p == nullptr) return nullptr;
  ::madvise(p, size, MADV_HUGEPAGE);
  ::madvise(p, size, MADV_DONTDUMP);
  if (touch_pages(p, size, hurry)) return p;
  ::munmap(p, size);
  return nullptr;
}

void unmap_host(void*, void* memory, uint64_t size) {
  ErrnoGuard guard;
  ::munmap(memory, size);
}

bool pin(void* self, void* memory, uint64_t size) {
  const InContext in(device_of(self).context);
  const RelaxedCapture relaxed;
  return GPUROTA_OWN(cuMemHostRegister_v2)(relaxed, memory, size, kPortable) == CUDA_SUCCESS;
}

void unpin(void* self, void* memory) {
  const InContext in(device_of(self).context);
  const RelaxedCapture relaxed;
  GPUROTA_OWN(cuMemHostUnregister)(relaxed, memory);
}

// All memory for cuMemAlloc is made exportable, if the driver supports that, so that the program
// can share it later. Being exportable costs nothing (bench/RESULTS.md), and could not be changed
// later without stopping the program.
uint32_t share_trait(const SwapDevice& device) {
  int can = 0;
  const CUresult result = GPUROTA_OWN(cuDeviceGetAttribute)(
      &can, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, device.device);
  if (result != CUDA_SUCCESS || can == 0) return 0;
  return CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
}

SwapCalls make_calls(SwapDevice* device) {
  return {.self = device,
          .reserve = reserve,
          .unreserve = unreserve,
          .create = create,
          .release = release,
          .map = map,
          .unmap = unmap,
          .set_access = set_access,
          .copy_out = copy_out,
          .copy_in = copy_in,
          .fence = fence,
          .wait = wait,
          .map_host = map_host,
          .unmap_host = unmap_host,
          .pin = pin,
          .unpin = unpin,
          .allow = allow,
          .hash_sums = hash_sums,
          .hash = begin_hash,
          .distrust_hash = distrust_hash,
          .traits = share_trait(*device)};
}

// With the device's mutex held.
CUresult make_stream(SwapDevice& device, CUcontext context) {
  const InContext in(context);
  CUstream stream = nullptr;
  CUresult result = GPUROTA_OWN(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) return result;
  for (CUevent& event : device.events) {
    event = nullptr;
    if (result != CUDA_SUCCESS) continue;
    result = GPUROTA_OWN(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING);
  }
  if (result != CUDA_SUCCESS) {
    for (CUevent& event : device.events) {
      if (event != nullptr) GPUROTA_OWN(cuEventDestroy_v2)(event);
      event = nullptr;
    }
    GPUROTA_OWN(cuStreamDestroy_v2)(Outside::ours(), stream);
    return result;
  }
  device.stream = stream;
  device.context = context;
  return CUDA_SUCCESS;
}

CUdevice device_of_slot(State& s, int slot) {
  for (CUdevice d = 0; d < static_cast<CUdevice>(kDevices); ++d) {
    if (s.device_slot[d].load(std::memory_order_relaxed) == slot + 1) return d;
  }
  return -1;
}

}  // namespace

CUresult give_all_access(State& s, CUdevice device, uint64_t address, uint64_t size) {
  CUmemAccessDesc access[GPUROTA_SLOTS] = {};
  size_t count = 0;
  access[count++] = {{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  for (CUdevice d = 0; s.link.slot_count > 1 && d < static_cast<CUdevice>(kDevices); ++d) {
    if (d == device || count == GPUROTA_SLOTS) continue;
    if (s.device_slot[d].load(std::memory_order_relaxed) <= 0) continue;
    int reaches = 0;
    if (GPUROTA_OWN(cuDeviceCanAccessPeer)(&reaches, d, device) != CUDA_SUCCESS || reaches == 0) {
      continue;
    }
    access[count++] = {{CU_MEM_LOCATION_TYPE_DEVICE, d}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  }
  return GPUROTA_OWN(cuMemSetAccess)(address, size, access, count);
}

SwapDevice* swap_device(State& s, int slot, CUcontext context) {
  SwapDevice& device = swap_of(s).devices[slot];
  if (device.ready.load(std::memory_order_acquire) != 0) return &device;
  Lock lock(device.mutex);
  if (device.ready.load() != 0) return &device;
  device.device = device_of_slot(s, slot);
  if (device.device < 0) return nullptr;
  if (device.context == nullptr &&
      (context == nullptr || make_stream(device, context) != CUDA_SUCCESS)) {
    return nullptr;
  }
  device.calls = make_calls(&device);
  device.space.set_calls(&device.calls);
  device.ready.store(1, std::memory_order_release);
  return &device;
}

CUresult have_stream(State& s, int slot) {
  SwapDevice& device = swap_of(s).devices[slot];
  Lock lock(device.mutex);
  if (device.context != nullptr) return CUDA_SUCCESS;
  CUresult result = CUDA_ERROR_INVALID_CONTEXT;  // no context lives
  const uint32_t used = s.contexts.used.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < used; ++i) {
    const ContextEntry& entry = s.contexts.entries[i];
    CUcontext context = entry.context.load(std::memory_order_acquire);
    if (context == nullptr || entry.slot.load() != slot) continue;
    result = make_stream(device, context);
    if (result == CUDA_SUCCESS) return result;
  }
  return result;
}

void forget_device_context(State& s, CUcontext context) {
  for (SwapDevice& device : swap_of(s).devices) {
    Lock lock(device.mutex);
    if (device.context != context) continue;
    device.context = nullptr;
    device.stream = nullptr;
    device.space.lose_pins();
    forget_hasher(device);
  }
}

}  // namespace gpurota::interposer
