#include "interposer/memory/fake_driver_test.h"

#include "interposer/account/headroom.h"
#include "interposer/account/state.h"
#include "interposer/driver/driver.h"
#include "interposer/os/config.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

// In the library, the assembly defines these.
void* (*gpurota_real_dlsym)(void*, const char*) = nullptr;
void* (*gpurota_real_dlvsym)(void*, const char*, const char*) = nullptr;
void* (*gpurota_real_dlmopen)(long, const char*, int) = nullptr;

namespace gpurota::interposer_test {
namespace {

using namespace gpurota::interposer;

constexpr std::uint64_t kBlock = 2u << 20;
constexpr std::uint64_t kPoolChunk = 32u << 20;

struct FakeDriver {
  std::mutex mutex;
  std::uint64_t next = std::uint64_t{1} << 40;
  std::map<std::uint64_t, std::uint64_t> linear;  // address to size
  std::map<std::uint64_t, int> blocks;            // 2 MiB block to allocations in it
  std::map<std::uint64_t, std::uint64_t> pooled;
  std::uint64_t pool_used = 0;
  std::uint64_t pool_reserved = 0;
  std::int64_t physical = 0;
  std::int64_t most = 0;
  int failures = 0;

  bool fails() { return failures > 0 && failures-- > 0; }
  void add(std::int64_t bytes) {
    physical += bytes;
    most = std::max(most, physical);
  }
};
FakeDriver fake;

CUresult get_current(CUcontext* out) {
  *out = reinterpret_cast<CUcontext>(std::uintptr_t{0x1000});
  return CUDA_SUCCESS;
}
CUresult get_device(CUdevice* out) { return *out = 0, CUDA_SUCCESS; }
CUresult get_count(int* out) { return *out = 1, CUDA_SUCCESS; }

// Places small allocations side by side, 512 bytes apart, as the driver does.
CUresult mem_alloc(CUdeviceptr* out, size_t size) {
  std::lock_guard lock(fake.mutex);
  if (fake.fails()) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t step = size < kBlock / 2 ? 512 : kBlock;
  fake.next = (fake.next + step - 1) / step * step;
  *out = fake.next;
  fake.next += size;
  fake.linear[*out] = size;
  for (std::uint64_t b = *out / kBlock; b <= (*out + size - 1) / kBlock; ++b) {
    if (fake.blocks[b]++ == 0) fake.add(static_cast<std::int64_t>(kBlock));
  }
  return CUDA_SUCCESS;
}

CUresult mem_free(CUdeviceptr ptr) {
  std::lock_guard lock(fake.mutex);
  const auto found = fake.linear.find(ptr);
  if (found == fake.linear.end()) return CUDA_ERROR_INVALID_VALUE;
  for (std::uint64_t b = ptr / kBlock; b <= (ptr + found->second - 1) / kBlock; ++b) {
    if (--fake.blocks[b] == 0) fake.add(-static_cast<std::int64_t>(kBlock));
  }
  fake.linear.erase(found);
  return CUDA_SUCCESS;
}

CUmemoryPool the_pool() { return reinterpret_cast<CUmemoryPool>(std::uintptr_t{0x2000}); }
CUresult get_pool(CUmemoryPool* out, CUdevice) { return *out = the_pool(), CUDA_SUCCESS; }

CUresult pool_attribute(CUmemoryPool, CUmemPool_attribute attribute, void* value) {
  std::lock_guard lock(fake.mutex);
  const std::uint64_t bytes =
      attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT ? fake.pool_used : fake.pool_reserved;
  std::memcpy(value, &bytes, sizeof(bytes));
  return CUDA_SUCCESS;
}

CUresult alloc_async(CUdeviceptr* out, size_t size, CUstream) {
  std::lock_guard lock(fake.mutex);
  if (fake.fails()) return CUDA_ERROR_OUT_OF_MEMORY;
  if (fake.pool_used + size > fake.pool_reserved) {
    const std::uint64_t growth = (size + kPoolChunk - 1) / kPoolChunk * kPoolChunk;
    fake.pool_reserved += growth;
    fake.add(static_cast<std::int64_t>(growth));
  }
  fake.pool_used += size;
  *out = (std::uint64_t{1} << 50) + (fake.next += 512);
  fake.pooled[*out] = size;
  return CUDA_SUCCESS;
}

CUresult free_async(CUdeviceptr ptr, CUstream) {
  std::lock_guard lock(fake.mutex);
  const auto found = fake.pooled.find(ptr);
  if (found == fake.pooled.end()) return CUDA_ERROR_INVALID_VALUE;
  fake.pool_used -= found->second;
  fake.pooled.erase(found);
  return CUDA_SUCCESS;
}

CUresult trim(CUmemoryPool, size_t) {
  std::lock_guard lock(fake.mutex);
  const std::uint64_t kept = (fake.pool_used + kPoolChunk - 1) / kPoolChunk * kPoolChunk;
  if (kept >= fake.pool_reserved) return CUDA_SUCCESS;
  fake.add(-static_cast<std::int64_t>(fake.pool_reserved - kept));
  fake.pool_reserved = kept;
  return CUDA_SUCCESS;
}

// Runs before the library's own constructor, which reads the environment. Sets a lease, and a
// daemon that does not exist and is not waited for.
__attribute__((constructor(101))) void set_environment() {
  ::setenv("GPUROTA_LEASE", "L1", 1);
  ::setenv("GPUROTA_SOCKET", "/nonexistent/tenant.sock", 1);
  ::setenv("GPUROTA_WAIT_MS", "0", 1);
}

}  // namespace

void reset_fake_driver(std::int64_t granted) {
  {
    std::lock_guard lock(fake.mutex);
    fake.linear.clear();
    fake.blocks.clear();
    fake.pooled.clear();
    fake.pool_used = fake.pool_reserved = 0;
    fake.physical = fake.most = 0;
    fake.failures = 0;
  }
  install(kFn_cuCtxGetCurrent, get_current);
  install(kFn_cuCtxGetDevice, get_device);
  install(kFn_cuDeviceGetCount, get_count);
  install(kFn_cuMemAlloc_v2, mem_alloc);
  install(kFn_cuMemFree_v2, mem_free);
  install(kFn_cuDeviceGetMemPool, get_pool);
  install(kFn_cuDeviceGetDefaultMemPool, get_pool);
  install(kFn_cuMemPoolGetAttribute, pool_attribute);
  install(kFn_cuMemAllocAsync, alloc_async);
  install(kFn_cuMemFreeAsync, free_async);
  install(kFn_cuMemPoolTrimTo, trim);
  g_driver_found.store(true);
  State& s = state();
  std::memset(static_cast<void*>(&s), 0, g_spare_memory.bytes);
  s.attached.store(1);
  s.link.slot_count = 1;
  s.device_slot[0].store(1);
  receive_grant(s, 0, granted, 0);
}

std::int64_t physical_bytes() {
  std::lock_guard lock(fake.mutex);
  return fake.physical;
}

std::int64_t most_physical_bytes() {
  std::lock_guard lock(fake.mutex);
  return fake.most;
}

std::int64_t charged_bytes() {
  const State& s = state();
  return s.slots[0].granted.load() - s.slots[0].headroom.load();
}

void fail_allocations(int count) {
  std::lock_guard lock(fake.mutex);
  fake.failures = count;
}

}  // namespace gpurota::interposer_test
