// Sharing linear memory and events with other processes by handle.
//
// The other process opens our file of it through /proc/PID/fd, so it needs the same user, as CUDA's own
// IPC does in effect. The owner stays charged; the memory goes when the owner frees it or ends.
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
using Kind = gpurota::sim::Allocation::Kind;

namespace {

constexpr std::uint32_t kMagic = 0x43504947;  // "GIPC"

struct Handle {
  std::uint32_t magic;
  std::int32_t pid, fd, device;
  std::uint64_t start_time, offset, bytes, offset_in_memory;
};
static_assert(sizeof(Handle) <= CU_IPC_HANDLE_SIZE);

constexpr std::uint32_t kEventMagic = 0x45504947;  // "GIPE"

struct EventHandle {
  std::uint32_t magic;
  std::int32_t pid, fd;
  std::uint64_t start_time;
};
static_assert(sizeof(EventHandle) <= CU_IPC_HANDLE_SIZE);

// What another process has open as `fd`; nothing if that process is gone.
template <class H>
Fd file_of(const H& handle) {
  if (gpurota::sim::process_start_time(handle.pid) != handle.start_time) return Fd();
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
  const Physical& memory = found->mapping->memory();
  Handle handle = {};
  handle.magic = kMagic;
  handle.pid = ::getpid();
  handle.start_time = gpurota::sim::process_start_time(handle.pid);
  handle.fd = memory.fd();
  handle.device = found->device;
  handle.offset = memory.offset();
  handle.bytes = memory.size();
  handle.offset_in_memory = found->mapping_offset;
  *out = {};
  std::memcpy(out->reserved, &handle, sizeof handle);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuIpcOpenMemHandle_v2(CUdeviceptr* out, CUipcMemHandle shared, unsigned flags) {
  const ContextCall call;
  if (call.failed()) return call.error();
  Handle handle = {};
  std::memcpy(&handle, shared.reserved, sizeof handle);
  if (out == nullptr || handle.magic != kMagic || (flags & ~1U) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (handle.pid == ::getpid()) return CUDA_ERROR_INVALID_CONTEXT;
  if (gpurota::sim::process_start_time(handle.pid) != handle.start_time) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Fd file = file_of(handle);
  if (!file) return CUDA_ERROR_MAP_FAILED;
  auto memory =
      Physical::borrow(call.machine(), handle.device, std::move(file), handle.offset, handle.bytes);
  Allocation allocation;
  allocation.mapping = Mapping::create(std::move(memory), gpurota::sim::kDevicePage);
  if (!allocation.mapping) return CUDA_ERROR_MAP_FAILED;
  allocation.base =
      reinterpret_cast<CUdeviceptr>(allocation.mapping->address() + handle.offset_in_memory);
  allocation.size = handle.bytes - handle.offset_in_memory;
  allocation.kind = Kind::kIpc;
  allocation.context = call.context();
  allocation.device = handle.device;
  allocation.mapping_offset = handle.offset_in_memory;
  allocation.id = call.machine().next_id();
  call.driver().space.add(allocation);
  *out = allocation.base;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuIpcOpenMemHandle(CUdeviceptr* out, CUipcMemHandle shared, unsigned flags) {
  return cuIpcOpenMemHandle_v2(out, shared, flags);
}

GPUROTA_SIM_API cuIpcCloseMemHandle(CUdeviceptr address) {
  ContextCall call;
  if (call.failed()) return call.error();
  const auto found = call.driver().space.find(address);
  if (!found || found->base != address || found->kind != Kind::kIpc)
    return CUDA_ERROR_INVALID_VALUE;
  call.driver().wait_all(call.driver().tails(*call.context()), call.lock());
  return call.driver().space.remove(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
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
