#include "interposer/device.h"
#include "interposer/driver.h"
#include "interposer/pool_charge.h"
#include "interposer/swap/devices.h"
#include "interposer/swap/touch.h"

#include <cstring>

namespace gpurota::interposer {
namespace {

constexpr unsigned kPortable = 1;  // CU_MEMHOSTREGISTER_PORTABLE

SwapDevice& device_of(void* self) { return *static_cast<SwapDevice*>(self); }

template <typename F, typename... Arguments>
CUresult call(F* function, Arguments... arguments) {
  return function != nullptr ? function(arguments...) : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult reserve(void*, uint64_t size, uint64_t* address) {
  CUdeviceptr at = 0;
  const CUresult result =
      call(GPUROTA_REAL(cuMemAddressReserve), &at, size, size_t{0}, CUdeviceptr{0}, 0ull);
  *address = at;
  return result;
}

CUresult unreserve(void*, uint64_t address, uint64_t size) {
  return call(GPUROTA_REAL(cuMemAddressFree), CUdeviceptr{address}, size);
}

// Near the GPU, as far as that is known; a driver that knows no nodes has host memory all the same.
CUresult create_hosted(const SwapDevice& device, uint64_t size, uint64_t* handle) {
  const auto make = GPUROTA_REAL(cuMemCreate);
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  int node = 0;
  if (call(GPUROTA_REAL(cuDeviceGetAttribute), &node, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID,
           device.device) != CUDA_SUCCESS ||
      node < 0) {
    node = 0;
  }
  CUmemGenericAllocationHandle made = 0;
  prop.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, node};
  CUresult result = call(make, &made, size, &prop, 0ull);
  if (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_NOT_SUPPORTED) {
    prop.location = {CU_MEM_LOCATION_TYPE_HOST, 0};
    result = call(make, &made, size, &prop, 0ull);
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
  const CUresult result = call(GPUROTA_REAL(cuMemCreate), &made, size, &prop, 0ull);
  *handle = made;
  return result;
}

CUresult release(void*, uint64_t handle) {
  return call(GPUROTA_REAL(cuMemRelease), CUmemGenericAllocationHandle{handle});
}

CUresult map(void*, uint64_t address, uint64_t size, uint64_t offset, uint64_t handle) {
  return call(GPUROTA_REAL(cuMemMap), CUdeviceptr{address}, size, size_t{offset},
              CUmemGenericAllocationHandle{handle}, 0ull);
}

CUresult unmap(void*, uint64_t address, uint64_t size) {
  return call(GPUROTA_REAL(cuMemUnmap), CUdeviceptr{address}, size);
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
  return call(GPUROTA_REAL(cuMemSetAccess), CUdeviceptr{address}, size,
              static_cast<const CUmemAccessDesc*>(list), count);
}

CUresult copy_out(void* self, void* host, uint64_t address, uint64_t size) {
  const SwapDevice& device = device_of(self);
  const InContext in(device.context);
  return call(GPUROTA_REAL(cuMemcpyDtoHAsync_v2), host, CUdeviceptr{address}, size, device.stream);
}

CUresult copy_in(void* self, uint64_t address, const void* host, uint64_t size) {
  const SwapDevice& device = device_of(self);
  const InContext in(device.context);
  return call(GPUROTA_REAL(cuMemcpyHtoDAsync_v2), CUdeviceptr{address}, host, size, device.stream);
}

CUresult fence(void* self, uint64_t* token) {
  SwapDevice& device = device_of(self);
  const InContext in(device.context);
  *token = device.last_fence.fetch_add(1) + 1;
  return call(GPUROTA_REAL(cuEventRecord), device.events[*token % kSwapFences], device.stream);
}

CUresult wait(void* self, uint64_t token) {
  SwapDevice& device = device_of(self);
  const InContext in(device.context);
  return call(GPUROTA_REAL(cuEventSynchronize), device.events[token % kSwapFences]);
}

// Huge pages are pinned in a fraction of the time, and so are pages that are there already: the kernel clears
// them at some 4 GiB/s, which the driver would wait for with its lock held, and all launches with it. Not
// inherited, or a fork would copy all of it; not in core dumps, as GPU memory is not.
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
  return call(GPUROTA_REAL(cuMemHostRegister_v2), memory, size, kPortable) == CUDA_SUCCESS;
}

void unpin(void* self, void* memory) {
  const InContext in(device_of(self).context);
  const RelaxedCapture relaxed;
  call(GPUROTA_REAL(cuMemHostUnregister), memory);
}

// All that cuMemAlloc gives is made so that the program can share it later: with a driver that can it costs nothing
// (bench/RESULTS.md), and it could not be changed then without stopping the program.
uint32_t share_trait(const SwapDevice& device) {
  int can = 0;
  const CUresult result =
      call(GPUROTA_REAL(cuDeviceGetAttribute), &can,
           CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, device.device);
  if (result != CUDA_SUCCESS || can == 0) return 0;
  return CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
}

SwapCalls make_calls(SwapDevice* device) {
  return {
      device,     reserve,  unreserve, create,    release,    map,           unmap,
      set_access, copy_out, copy_in,   fence,     wait,       map_host,      unmap_host,
      pin,        unpin,    allow,     hash_sums, begin_hash, distrust_hash, share_trait(*device)};
}

// With the device's mutex held.
bool make_stream(SwapDevice& device, CUcontext context) {
  const InContext in(context);
  const RelaxedCapture relaxed;
  CUstream stream = nullptr;
  if (call(GPUROTA_REAL(cuStreamCreate), &stream, unsigned{CU_STREAM_NON_BLOCKING}) !=
      CUDA_SUCCESS) {
    return false;
  }
  CUresult result = CUDA_SUCCESS;
  for (CUevent& event : device.events) {
    event = nullptr;
    if (result != CUDA_SUCCESS) continue;
    result = call(GPUROTA_REAL(cuEventCreate), &event, CU_EVENT_DISABLE_TIMING);
  }
  if (result != CUDA_SUCCESS) {
    for (CUevent& event : device.events) {
      if (event != nullptr) call(GPUROTA_REAL(cuEventDestroy_v2), event);
      event = nullptr;
    }
    call(GPUROTA_REAL(cuStreamDestroy_v2), stream);
    return false;
  }
  device.stream = stream;
  device.context = context;
  return true;
}

CUdevice device_of_slot(State& s, int slot) {
  for (CUdevice d = 0; d < static_cast<CUdevice>(kDevices); ++d) {
    if (s.device_slot[d].load(std::memory_order_relaxed) == slot + 1) return d;
  }
  return -1;
}

}  // namespace

CUresult give_all_access(State& s, CUdevice device, uint64_t address, uint64_t size) {
  const auto can = GPUROTA_REAL(cuDeviceCanAccessPeer);
  CUmemAccessDesc access[GPUROTA_SLOTS] = {};
  size_t count = 0;
  access[count++] = {{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  for (CUdevice d = 0; s.link.slot_count > 1 && d < static_cast<CUdevice>(kDevices); ++d) {
    if (d == device || count == GPUROTA_SLOTS) continue;
    if (s.device_slot[d].load(std::memory_order_relaxed) <= 0) continue;
    int reaches = 0;
    if (call(can, &reaches, d, device) != CUDA_SUCCESS || reaches == 0) continue;
    access[count++] = {{CU_MEM_LOCATION_TYPE_DEVICE, d}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  }
  return call(GPUROTA_REAL(cuMemSetAccess), CUdeviceptr{address}, size,
              static_cast<const CUmemAccessDesc*>(access), count);
}

InContext::InContext(CUcontext context) {
  const auto get = GPUROTA_REAL(cuCtxGetCurrent);
  CUcontext current = nullptr;
  if (context == nullptr || get == nullptr) return;
  if (get(&current) == CUDA_SUCCESS && current == context) return;
  pushed_ = call(GPUROTA_REAL(cuCtxPushCurrent_v2), context) == CUDA_SUCCESS;
}

InContext::~InContext() {
  CUcontext popped = nullptr;
  if (pushed_) call(GPUROTA_REAL(cuCtxPopCurrent_v2), &popped);
}

SwapDevice* swap_device(State& s, int slot, CUcontext context) {
  SwapDevice& device = s.swap.devices[slot];
  if (device.ready.load(std::memory_order_acquire) != 0) return &device;
  Lock lock(device.mutex);
  if (device.ready.load() != 0) return &device;
  device.device = device_of_slot(s, slot);
  if (device.device < 0) return nullptr;
  if (device.context == nullptr && (context == nullptr || !make_stream(device, context))) {
    return nullptr;
  }
  device.calls = make_calls(&device);
  device.space.set_calls(&device.calls);
  device.ready.store(1, std::memory_order_release);
  return &device;
}

CUresult have_stream(State& s, int slot) {
  SwapDevice& device = s.swap.devices[slot];
  Lock lock(device.mutex);
  if (device.context != nullptr) return CUDA_SUCCESS;
  CUresult result = CUDA_ERROR_INVALID_CONTEXT;
  const uint32_t used = s.contexts.used.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < used; ++i) {
    const ContextEntry& entry = s.contexts.entries[i];
    CUcontext context = entry.context.load(std::memory_order_acquire);
    if (context == nullptr || entry.slot.load() != slot) continue;
    if (make_stream(device, context)) return CUDA_SUCCESS;
    result = CUDA_ERROR_NOT_SUPPORTED;
  }
  return result;
}

void forget_device_context(State& s, CUcontext context) {
  for (SwapDevice& device : s.swap.devices) {
    Lock lock(device.mutex);
    if (device.context != context) continue;
    device.context = nullptr;
    device.stream = nullptr;
    device.space.lose_pins();
    forget_hasher(device);
  }
}

}  // namespace gpurota::interposer
