// Memory pools shared between processes: a descriptor for the pool, a few words for each
// allocation.
//
// As with IPC handles, the importing process opens the exporter's memory through /proc/PID/fd, so
// both need the same user. The owner stays charged; the memory is released when the owner frees it
// or ends.
#include "sim/cuda/api.h"
#include "sim/cuda/pool.h"

#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using gpurota::Fd;
using gpurota::sim::Allocation;
using gpurota::sim::Call;
using gpurota::sim::Mapping;
using gpurota::sim::MemPool;
using gpurota::sim::Physical;
using Kind = gpurota::sim::Allocation::Kind;

namespace {

constexpr std::uint32_t kPoolMagic = 0x4c4f4f50;   // "POOL"
constexpr std::uint32_t kPieceMagic = 0x43454950;  // "PIEC"

struct SharedPool {
  std::uint32_t magic;
  std::int32_t pid, device;
  std::uint64_t start_time;
};

struct SharedPiece {
  std::uint32_t magic;
  std::int32_t pid, fd, device;
  std::uint64_t start_time, offset, bytes, size;
  std::uint32_t offset_in_chunk_512;  // unit: what pools hand out
};
static_assert(sizeof(SharedPiece) <= sizeof(CUmemPoolPtrExportData));

constexpr std::size_t kStep = 512;

bool is_alive(std::int32_t pid, std::uint64_t start_time) {
  return gpurota::sim::process_start_time(pid) == start_time;
}

int ordinal_of(const gpurota::sim::Driver& driver, int device) {
  for (std::size_t i = 0; i < driver.visible.size(); ++i) {
    if (driver.visible[i] == device) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

GPUROTA_SIM_API cuMemPoolExportToShareableHandle(void* out, CUmemoryPool handle,
                                                 CUmemAllocationHandleType type,
                                                 unsigned long long flags) {
  const Call call;
  if (call.failed()) return call.error();
  MemPool* pool = call.driver().pools.find(handle);
  if (out == nullptr || flags != 0 || pool == nullptr || pool->is_destroyed || pool->is_imported ||
      type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || pool->properties.handleTypes != type) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const SharedPool shared = {kPoolMagic, ::getpid(), pool->device,
                             gpurota::sim::process_start_time(::getpid())};
  Fd file(::memfd_create("gpurota-sim-pool", MFD_CLOEXEC));
  if (!file || ::write(file.get(), &shared, sizeof shared) != sizeof shared) {
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  pool->is_exported = true;
  *static_cast<int*>(out) = file.release();
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuMemPoolImportFromShareableHandle(CUmemoryPool* out, void* handle,
                                                   CUmemAllocationHandleType type,
                                                   unsigned long long flags) {
  const Call call;
  if (call.failed()) return call.error();
  SharedPool shared = {};
  const int fd = static_cast<int>(reinterpret_cast<std::intptr_t>(handle));
  if (out == nullptr || flags != 0 || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
      ::pread(fd, &shared, sizeof shared, 0) != sizeof shared || shared.magic != kPoolMagic) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto pool = std::make_unique<MemPool>();
  pool->is_imported = true;
  pool->device = shared.device;
  pool->ordinal = ordinal_of(call.driver(), shared.device);
  pool->properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  pool->properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, pool->ordinal};
  *out = reinterpret_cast<CUmemoryPool>(call.driver().pools.add(std::move(pool)));
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuMemPoolExportPointer(CUmemPoolPtrExportData* out, CUdeviceptr address) {
  const Call call;
  if (call.failed()) return call.error();
  const auto found = call.driver().space.find(address);
  if (out == nullptr || !found || found->kind != Kind::kPool || found->base != address ||
      !found->pool->is_exported) {  // "from an already shared memory pool"; as on a real driver
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Physical& memory = found->mapping->memory();
  SharedPiece piece = {};
  piece.magic = kPieceMagic;
  piece.pid = ::getpid();
  piece.start_time = gpurota::sim::process_start_time(piece.pid);
  piece.fd = memory.fd();
  piece.device = found->device;
  piece.offset = memory.offset();
  piece.bytes = memory.size();
  piece.size = found->size;
  piece.offset_in_chunk_512 = static_cast<std::uint32_t>(found->mapping_offset / kStep);
  *out = {};
  std::memcpy(out->reserved, &piece, sizeof piece);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuMemPoolImportPointer(CUdeviceptr* out, CUmemoryPool handle,
                                       CUmemPoolPtrExportData* data) {
  const Call call;
  if (call.failed()) return call.error();
  const MemPool* pool = call.driver().pools.find(handle);
  SharedPiece piece = {};
  if (out == nullptr || data == nullptr || pool == nullptr || !pool->is_imported) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::memcpy(&piece, data->reserved, sizeof piece);
  if (piece.magic != kPieceMagic || !is_alive(piece.pid, piece.start_time)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", piece.pid, piece.fd);
  Fd file(::open(path, O_RDWR | O_CLOEXEC));
  if (!file) return CUDA_ERROR_MAP_FAILED;
  Allocation allocation;
  allocation.mapping = Mapping::create(
      Physical::borrow(call.machine(), piece.device, std::move(file), piece.offset, piece.bytes),
      gpurota::sim::kDevicePage);
  if (!allocation.mapping) return CUDA_ERROR_MAP_FAILED;
  allocation.mapping_offset = piece.offset_in_chunk_512 * kStep;
  allocation.base =
      reinterpret_cast<CUdeviceptr>(allocation.mapping->address() + allocation.mapping_offset);
  allocation.size = piece.size;
  allocation.kind = Kind::kImported;
  allocation.device = piece.device;
  allocation.id = call.machine().next_id();
  call.driver().space.add(allocation);
  *out = allocation.base;
  return CUDA_SUCCESS;
}
