#include "interposer/pools.h"

#include "interposer/debug.h"
#include "interposer/device.h"
#include "interposer/driver.h"
#include "interposer/ledger.h"
#include "interposer/linear.h"

namespace gpurota::interposer {
namespace {

// Pools grow in units of 32 MiB as far as is known. Where figures are seen that 32 MiB does not
// divide, the unit is smaller; the driver never maps less than 2 MiB.
constexpr uint32_t kLargestUnitLog2 = 25;
constexpr uint32_t kSmallestUnitLog2 = 21;

bool read_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, int64_t* value) {
  const auto get = GPUROTA_REAL(cuMemPoolGetAttribute);
  cuuint64_t bytes = 0;
  if (get == nullptr || get(pool, attribute, &bytes) != CUDA_SUCCESS) return false;
  *value = static_cast<int64_t>(bytes);
  return true;
}

// The most by which a pool grows for an allocation of `size` bytes.
int64_t growth_for(State& s, int slot, uint64_t size) {
  uint32_t unit_log2 = s.slots[slot].pool_unit_log2.load(std::memory_order_relaxed);
  if (unit_log2 == 0) unit_log2 = kLargestUnitLog2;
  const uint64_t unit = uint64_t{1} << unit_log2;
  constexpr uint64_t kMost = uint64_t{1} << 62;
  return static_cast<int64_t>(size > kMost ? kMost : (size + unit - 1) & ~(unit - 1));
}

void learn_unit(State& s, int slot, int64_t reserved) {
  if (reserved == 0) return;
  auto low = static_cast<uint32_t>(__builtin_ctzll(static_cast<uint64_t>(reserved)));
  if (low >= kLargestUnitLog2) return;
  if (low < kSmallestUnitLog2) low = kSmallestUnitLog2;
  std::atomic<uint32_t>& unit = s.slots[slot].pool_unit_log2;
  const uint32_t known = unit.load(std::memory_order_relaxed);
  if (known == 0 || low < known) unit.store(low, std::memory_order_relaxed);
}

// Reads and charges under the pool's lock, so that charges follow each other as the readings do.
// Returns what the charge has grown by.
int64_t read_charge(State& s, Pool& pool) {
  Lock lock(pool.mutex);
  int64_t reserved = 0;
  const CUmemoryPool handle = pool.pool.load(std::memory_order_relaxed);
  if (handle == nullptr || pool.destroyed) return 0;
  if (!read_attribute(handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved)) return 0;
  const int64_t grown = reserved - pool.charged;
  if (grown == 0) return 0;
  pool.charged = reserved;
  learn_unit(s, pool.slot, reserved);
  return grown;
}

Pool* find_pool(State& s, CUmemoryPool handle) {
  const uint32_t used = s.pools.used.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < used; ++i) {
    Pool& p = s.pools.entries[i];
    if (p.pool.load(std::memory_order_acquire) == handle && !p.destroyed) return &p;
  }
  return nullptr;
}

Pool* add_pool(State& s, CUmemoryPool handle, int slot, bool tracked) {
  Lock lock(s.pools.mutex);
  if (Pool* known = find_pool(s, handle)) return known;
  for (uint32_t i = 0; i < kPools; ++i) {
    Pool& p = s.pools.entries[i];
    if (p.pool.load() != nullptr) continue;
    p.charged = 0;
    p.live.store(0);
    p.slot = slot;
    p.tracked = tracked;
    p.destroyed = false;
    p.pool.store(handle, std::memory_order_release);
    if (i >= s.pools.used.load()) s.pools.used.store(i + 1, std::memory_order_release);
    return &p;
  }
  GPUROTA_DEBUG("more than %zu memory pools: this one is counted by NVML only", kPools);
  return nullptr;
}

// A pool nobody told us of: a device's default one.
Pool* learn_pool(State& s, CUmemoryPool handle) {
  const auto get_count = GPUROTA_REAL(cuDeviceGetCount);
  const auto get_default = GPUROTA_REAL(cuDeviceGetDefaultMemPool);
  int count = 0;
  if (get_count == nullptr || get_default == nullptr || get_count(&count) != CUDA_SUCCESS) {
    return nullptr;
  }
  for (CUdevice device = 0; device < count; ++device) {
    CUmemoryPool pool = nullptr;
    if (get_default(&pool, device) != CUDA_SUCCESS || pool != handle) continue;
    const int slot = slot_of_device(device);
    return slot >= 0 ? add_pool(s, handle, slot, false) : nullptr;
  }
  return nullptr;
}

Pool* known_pool(State& s, CUmemoryPool handle) {
  Pool* pool = find_pool(s, handle);
  return pool != nullptr ? pool : learn_pool(s, handle);
}

// The pool that cuMemAllocAsync takes from where `place` is.
Pool* current_pool(State& s, const Place& place) {
  CUmemoryPool handle = s.slots[place.slot].current_pool.load(std::memory_order_relaxed);
  if (handle == nullptr) {
    const auto get = GPUROTA_REAL(cuDeviceGetMemPool);
    CUdevice device = -1;
    for (CUdevice d = 0; d < static_cast<CUdevice>(kDevices) && device < 0; ++d) {
      if (s.device_slot[d].load(std::memory_order_relaxed) == place.slot + 1) device = d;
    }
    if (get == nullptr || device < 0 || get(&handle, device) != CUDA_SUCCESS) return nullptr;
    s.slots[place.slot].current_pool.store(handle, std::memory_order_relaxed);
  }
  return known_pool(s, handle);
}

bool is_capturing(CUstream stream, bool per_thread) {
  const auto ask =
      per_thread ? GPUROTA_REAL(cuStreamIsCapturing_ptsz) : GPUROTA_REAL(cuStreamIsCapturing);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return ask != nullptr && ask(stream, &status) == CUDA_SUCCESS &&
         status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

// Whether the pool has that much that is reserved and not in use.
bool has_slack(Pool& pool, uint64_t size) {
  const CUmemoryPool handle = pool.pool.load(std::memory_order_relaxed);
  int64_t reserved = 0;
  int64_t in_use = 0;
  return read_attribute(handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved) &&
         read_attribute(handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &in_use) &&
         reserved - in_use >= static_cast<int64_t>(size);
}

// What the lease could give beyond the headroom, as the daemon last showed it.
bool lease_may_have(State& s, int slot, int64_t bytes) {
  const gpurota_page* page = s.page.load(std::memory_order_acquire);
  if (page == nullptr) return false;
  const uint64_t available = __atomic_load_n(&page->grant[slot].available_bytes, __ATOMIC_RELAXED);
  const int64_t headroom = s.slots[slot].headroom.load(std::memory_order_relaxed);
  return headroom + static_cast<int64_t>(available) >= bytes;
}

// One allocation on its way.
struct Request {
  Pool* pool;
  CUdeviceptr* out;
  uint64_t size;
  CUstream stream;
  bool per_thread;
};

void free_again(const Request& request) {
  const auto free_async =
      request.per_thread ? GPUROTA_REAL(cuMemFreeAsync_ptsz) : GPUROTA_REAL(cuMemFreeAsync);
  if (free_async != nullptr) free_async(*request.out, request.stream);
}

// Ends what begin took: charges growth, gives the rest back. False if the pool has grown by more than
// can be had; what others have in flight is theirs, and will come back.
bool settle(State& s, Pool& pool, int64_t taken) {
  const int slot = pool.slot;
  Slot& ledger = s.slots[slot];
  const int64_t grown = read_charge(s, pool);
  const int64_t others = ledger.in_flight.fetch_sub(taken, std::memory_order_relaxed) - taken;
  const int64_t left =
      ledger.headroom.fetch_add(taken - grown, std::memory_order_relaxed) + taken - grown;
  if (grown != 0) s.mirror(slot);
  if (left + others >= 0) return true;
  if (!reserve(slot, -(left + others))) return false;
  put(slot, -(left + others));
  return true;
}

template <typename Call>
CUresult attempt(State& s, const Request& request, int64_t taken, Call call) {
  Pool& pool = *request.pool;
  const CUresult result = call();
  const bool covered = settle(s, pool, taken);
  if (result != CUDA_SUCCESS) return result;
  if (!covered) {
    free_again(request);
    reclaim_pools(pool.slot);
    return refuse(pool.slot, request.size);
  }
  count(&s.slots[pool.slot].allocations);
  if (pool.tracked) {
    pool.live.fetch_add(static_cast<int64_t>(request.size));
    const auto index = static_cast<uint16_t>(&pool - s.pools.entries + 1);
    remember(s, *request.out, {request.size, 0, index, static_cast<uint8_t>(pool.slot)});
  }
  return CUDA_SUCCESS;
}

// The headroom is short of what the pool could grow by. In a pool at its limit most allocations are
// served from what it has, which only the driver knows; so if it has enough, the driver is asked.
template <typename Call>
CUresult attempt_when_short(State& s, const Request& request, int64_t growth, Call call) {
  const int slot = request.pool->slot;
  if (is_capturing(request.stream, request.per_thread)) return call();  // becomes a graph node
  Slot& ledger = s.slots[slot];
  if (!lease_may_have(s, slot, growth) && has_slack(*request.pool, request.size)) {
    const CUresult result = attempt(s, request, 0, call);
    if (result != CUDA_ERROR_OUT_OF_MEMORY) return result;
  }
  if (!reserve(slot, growth)) {
    if (!has_slack(*request.pool, request.size)) return refuse(slot, request.size);
    return attempt(s, request, 0, call);
  }
  ledger.in_flight.fetch_add(growth, std::memory_order_relaxed);
  return attempt(s, request, growth, call);
}

template <typename Call>
CUresult allocate_from(const Request& request, Call call) {
  State& s = state();
  const int slot = request.pool->slot;
  const int64_t growth = growth_for(s, slot, request.size);
  if (!take(s, slot, growth)) return attempt_when_short(s, request, growth, call);
  s.slots[slot].in_flight.fetch_add(growth, std::memory_order_relaxed);
  return attempt(s, request, growth, call);
}

template <typename Real>
CUresult allocate_async(CUdeviceptr* out, uint64_t size, CUstream stream, bool per_thread,
                        Real real) {
  const auto call = [=] { return real(out, size, stream); };
  const Place place = place_of_stream(stream, per_thread);
  if (place.kind == Place::Kind::kNoContext || size == 0) return call();
  if (place.kind == Place::Kind::kForeign) return CUDA_ERROR_OUT_OF_MEMORY;
  Pool* pool = current_pool(state(), place);
  if (pool == nullptr) return call();
  return allocate_from({pool, out, size, stream, per_thread}, call);
}

template <typename Real>
CUresult allocate_from_pool(CUdeviceptr* out, uint64_t size, CUmemoryPool handle, CUstream stream,
                            bool per_thread, Real real) {
  const auto call = [=] { return real(out, size, handle, stream); };
  Pool* pool = handle != nullptr && size != 0 ? known_pool(state(), handle) : nullptr;
  if (pool == nullptr) return call();  // host memory, imported, or an error to be
  return allocate_from({pool, out, size, stream, per_thread}, call);
}

// Linear memory may be freed this way too, and tracked pools want to know.
template <typename Real>
CUresult free_async(CUdeviceptr ptr, CUstream stream, Real real) {
  State& s = state();
  Allocation allocation{};
  const bool known = forget(s, ptr, &allocation);
  const CUresult result = real(ptr, stream);
  if (!known) return result;
  if (result == CUDA_SUCCESS) {
    credit(s, ptr, allocation);
  } else {
    remember(s, ptr, allocation);
  }
  return result;
}

void remove_pool(State& s, Pool& pool) {
  int64_t charged = 0;
  {
    Lock lock(pool.mutex);
    charged = pool.charged;
    pool.charged = 0;
    pool.pool.store(nullptr, std::memory_order_release);
  }
  if (charged != 0) put(pool.slot, charged);
  s.mirror(pool.slot);
}

void forget_current_pools(State& s) {
  for (Slot& slot : s.slots) slot.current_pool.store(nullptr, std::memory_order_relaxed);
}

}  // namespace

void settle_pools(int slot) {
  State& s = state();
  const uint32_t used = s.pools.used.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < used; ++i) {
    Pool& pool = s.pools.entries[i];
    if (pool.pool.load() == nullptr || pool.slot != slot) continue;
    const int64_t grown = read_charge(s, pool);
    if (grown != 0) put(slot, -grown);
  }
}

bool reclaim_pools(int slot) {
  State& s = state();
  const auto trim = GPUROTA_REAL(cuMemPoolTrimTo);
  const int64_t before = s.slots[slot].headroom.load();
  const uint32_t used = s.pools.used.load(std::memory_order_acquire);
  bool any = false;
  for (uint32_t i = 0; i < used; ++i) {
    Pool& pool = s.pools.entries[i];
    const CUmemoryPool handle = pool.pool.load();
    if (handle == nullptr || pool.slot != slot || pool.destroyed) continue;
    if (trim != nullptr) trim(handle, 0);
    any = true;
  }
  if (any) settle_pools(slot);
  return any && s.slots[slot].headroom.load() > before;
}

void credit_pool_allocation(State& s, const Allocation& allocation) {
  Pool& pool = s.pools.entries[allocation.pool - 1];
  const auto size = static_cast<int64_t>(allocation.size);
  const int64_t left = pool.live.fetch_sub(size) - size;
  if (left == 0 && pool.destroyed) remove_pool(s, pool);
}

}  // namespace gpurota::interposer

namespace interposer = gpurota::interposer;

CUresult cuMemAllocAsync(CUdeviceptr* out, size_t size, CUstream stream) {
  GPUROTA_ENTER(cuMemAllocAsync, out, size, stream);
  return interposer::allocate_async(out, size, stream, false, real);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr* out, size_t size, CUstream stream) {
  GPUROTA_ENTER(cuMemAllocAsync_ptsz, out, size, stream);
  return interposer::allocate_async(out, size, stream, true, real);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, size_t size, CUmemoryPool pool,
                                 CUstream stream) {
  GPUROTA_ENTER(cuMemAllocFromPoolAsync, out, size, pool, stream);
  return interposer::allocate_from_pool(out, size, pool, stream, false, real);
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* out, size_t size, CUmemoryPool pool,
                                      CUstream stream) {
  GPUROTA_ENTER(cuMemAllocFromPoolAsync_ptsz, out, size, pool, stream);
  return interposer::allocate_from_pool(out, size, pool, stream, true, real);
}

CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream) {
  GPUROTA_ENTER(cuMemFreeAsync, ptr, stream);
  return interposer::free_async(ptr, stream, real);
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr ptr, CUstream stream) {
  GPUROTA_ENTER(cuMemFreeAsync_ptsz, ptr, stream);
  return interposer::free_async(ptr, stream, real);
}

CUresult cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* props) {
  GPUROTA_ENTER(cuMemPoolCreate, out, props);
  const CUresult result = real(out, props);
  if (result != CUDA_SUCCESS || props->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return result;
  const int slot = interposer::slot_of_device(props->location.id);
  if (slot >= 0) interposer::add_pool(interposer::state(), *out, slot, true);
  return result;
}

// The driver keeps a destroyed pool's memory until its last allocation is freed; so do we.
CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  GPUROTA_ENTER(cuMemPoolDestroy, pool);
  interposer::State& s = interposer::state();
  interposer::Pool* known = interposer::find_pool(s, pool);
  if (known != nullptr) {
    interposer::settle_pools(known->slot);
    known->destroyed = true;
  }
  const CUresult result = real(pool);
  if (known == nullptr) return result;
  if (result != CUDA_SUCCESS) {
    known->destroyed = false;
    return result;
  }
  interposer::forget_current_pools(s);
  if (known->live.load() == 0) interposer::remove_pool(s, *known);
  return result;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  GPUROTA_ENTER(cuMemPoolTrimTo, pool, keep);
  const CUresult result = real(pool, keep);
  const interposer::Pool* known = interposer::find_pool(interposer::state(), pool);
  if (known != nullptr) interposer::settle_pools(known->slot);
  return result;
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  GPUROTA_ENTER(cuDeviceSetMemPool, device, pool);
  const CUresult result = real(device, pool);
  interposer::forget_current_pools(interposer::state());
  return result;
}

CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  GPUROTA_ENTER(cuMemSetMemPool, location, type, pool);
  const CUresult result = real(location, type, pool);
  interposer::forget_current_pools(interposer::state());
  return result;
}
