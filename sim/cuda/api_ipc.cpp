// Sharing linear memory with other processes by handle.
//
// The other process opens our memory through /proc/PID/fd, so it needs the same user, as CUDA's own
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
using gpurota::sim::Mapping;
using gpurota::sim::Physical;
using Kind = gpurota::sim::Allocation::Kind;

namespace {

constexpr std::uint32_t kMagic = 0x43504947;  // "GIPC"

struct Handle {
  std::uint32_t magic;
  std::int32_t pid, fd, device;
  std::uint64_t start_time, offset, bytes, offset_in_memory;
};
static_assert(sizeof(Handle) <= CU_IPC_HANDLE_SIZE);

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
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", handle.pid, handle.fd);
  Fd file(::open(path, O_RDWR | O_CLOEXEC));
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
