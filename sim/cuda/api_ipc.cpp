// Sharing linear memory and events with other processes by handle.
//
// The importing process opens the exporter's memory file through /proc/PID/fd, so both need the
// same user, as CUDA's own IPC does in effect. Memory lives as long as any process holds it. The
// owner is charged while it is one of the holders.
#include "sim/cuda/api.h"
#include "sim/cuda/memory.h"

#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

using gpurota::Fd;
using gpurota::sim::Allocation;
using gpurota::sim::ContextCall;
using gpurota::sim::Event;
using gpurota::sim::Mapping;
using gpurota::sim::Physical;
using gpurota::sim::SharedEvent;
using gpurota::sim::Space;
using Kind = gpurota::sim::Allocation::Kind;

namespace {

constexpr std::uint32_t kMagic = 0x43504947;  // "GIPC"

struct Handle {
  std::uint32_t magic;
  std::int32_t pid, fd;
  std::uint64_t start_time;
  gpurota::sim::MemoryId memory;
  std::uint64_t offset_in_memory, size;
};
static_assert(sizeof(Handle) <= CU_IPC_HANDLE_SIZE);

constexpr std::uint32_t kEventMagic = 0x45504947;  // "GIPE"

struct EventHandle {
  std::uint32_t magic;
  std::int32_t pid, fd;
  std::uint64_t start_time;
};
static_assert(sizeof(EventHandle) <= CU_IPC_HANDLE_SIZE);

template <class H>
bool is_alive(const H& handle) {
  return gpurota::sim::process_start_time(handle.pid) == handle.start_time;
}

// The file that another process has open as `fd`; nothing if that process is gone.
template <class H>
Fd file_of(const H& handle) {
  if (!is_alive(handle)) return Fd();
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", handle.pid, handle.fd);
  return Fd(::open(path, O_RDWR | O_CLOEXEC));
}

}  // namespace

GPUROTA_SIM_API cuIpcGetMemHandle(CUipcMemHandle* out, CUdeviceptr address) {
  const ContextCall call;
  if (call.failed()) return call.error();
  const auto found = call.driver().space.find(address);
  if (out == nullptr || !found || found->kind != Kind::kLinear) return CUDA_ERROR_INVALID_VALUE;
  Physical& memory = found->mapping->memory();
  if (!memory.share()) return CUDA_ERROR_OUT_OF_MEMORY;
  Handle handle = {};
  handle.magic = kMagic;
  handle.pid = ::getpid();
  handle.start_time = gpurota::sim::process_start_time(handle.pid);
  handle.fd = memory.fd();
  handle.memory = memory.id();
  handle.offset_in_memory = found->mapping_offset;
  handle.size = found->size;
  *out = {};
  std::memcpy(out->reserved, &handle, sizeof handle);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuIpcOpenMemHandle_v2(CUdeviceptr* out, CUipcMemHandle shared, unsigned flags) {
  const ContextCall call;
  if (call.failed()) return call.error();
  Handle handle = {};
  std::memcpy(&handle, shared.reserved, sizeof handle);
  if (out == nullptr || handle.magic != kMagic || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (handle.pid == ::getpid()) return CUDA_ERROR_INVALID_CONTEXT;
  Space& space = call.driver().space;
  const auto is_of_memory = [&](const Allocation& a) {
    return a.kind == Kind::kIpc && a.mapping->memory().id() == handle.memory;
  };
  const auto open = space.find_if([&](const Allocation& a) {
    return is_of_memory(a) && a.mapping_offset == handle.offset_in_memory;
  });
  if (open) {
    if (open->context != call.context()) return CUDA_ERROR_INVALID_HANDLE;
    space.update(open->base, [](Allocation& a) { ++a.opened; });
    *out = open->base;
    return CUDA_SUCCESS;
  }
  Allocation allocation;
  if (const auto neighbour = space.find_if(is_of_memory)) {
    allocation.mapping = neighbour->mapping;
  } else {
    if (!is_alive(handle)) return CUDA_ERROR_INVALID_VALUE;
    Fd file = file_of(handle);
    if (!file) return CUDA_ERROR_MAP_FAILED;
    auto memory = Physical::import(call.machine(), std::move(file), handle.memory.offset);
    if (!memory) return CUDA_ERROR_NOT_PERMITTED;  // freed
    allocation.mapping = Mapping::create(std::move(memory), gpurota::sim::kDevicePage);
    if (!allocation.mapping) return CUDA_ERROR_MAP_FAILED;
  }
  allocation.base =
      reinterpret_cast<CUdeviceptr>(allocation.mapping->address() + handle.offset_in_memory);
  allocation.size = handle.size;
  allocation.kind = Kind::kIpc;
  allocation.context = call.context();
  allocation.device = allocation.mapping->memory().device();
  allocation.mapping_offset = handle.offset_in_memory;
  allocation.id = call.machine().next_id();
  space.add(allocation);
  *out = allocation.base;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuIpcOpenMemHandle(CUdeviceptr* out, CUipcMemHandle shared, unsigned flags) {
  return cuIpcOpenMemHandle_v2(out, shared, flags);
}

GPUROTA_SIM_API cuIpcCloseMemHandle(CUdeviceptr address) {
  ContextCall call;
  if (call.failed()) return call.error();
  Space& space = call.driver().space;
  call.driver().wait_all(call.driver().tails(*call.context()), call.lock());
  const auto found = space.find(address);
  if (!found || found->base != address || found->kind != Kind::kIpc) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (found->opened > 1) {
    space.update(address, [](Allocation& a) { --a.opened; });
  } else {
    (void)space.remove(address);
  }
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuIpcGetEventHandle(CUipcEventHandle* out, CUevent handle) {
  const ContextCall call;
  if (call.failed()) return call.error();
  const Event* event = call.driver().events.find(handle);
  if (event == nullptr || !event->shared) return CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  EventHandle shared = {};
  shared.magic = kEventMagic;
  shared.pid = ::getpid();
  shared.fd = event->shared->fd();
  shared.start_time = gpurota::sim::process_start_time(shared.pid);
  *out = {};
  std::memcpy(out->reserved, &shared, sizeof shared);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuIpcOpenEventHandle(CUevent* out, CUipcEventHandle given) {
  const ContextCall call;
  if (call.failed()) return call.error();
  EventHandle handle = {};
  std::memcpy(&handle, given.reserved, sizeof handle);
  if (out == nullptr || handle.magic != kEventMagic) return CUDA_ERROR_INVALID_VALUE;
  if (handle.pid == ::getpid()) return CUDA_ERROR_INVALID_CONTEXT;
  auto event = std::make_unique<Event>();
  event->shared = SharedEvent::open(file_of(handle));
  if (!event->shared) return CUDA_ERROR_MAP_FAILED;
  event->context = call.context();
  event->flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
  *out = reinterpret_cast<CUevent>(call.driver().events.add(std::move(event)));
  return CUDA_SUCCESS;
}
