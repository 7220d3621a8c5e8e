#include "interposer/memory/pool_charge.h"

#include "interposer/account/device.h"
#include "interposer/account/headroom.h"
#include "interposer/driver/own_calls.h"
#include "interposer/memory/reserve.h"
#include "interposer/os/debug.h"

namespace gpurota::interposer {
namespace {

// Pools grow in units of 32 MiB in all known drivers. If a reading is not a multiple of 32 MiB, the
// unit is smaller; the driver never maps less than 2 MiB.
constexpr uint32_t kLargestUnitLog2 = 25;
constexpr uint32_t kSmallestUnitLog2 = 21;

constexpr int kLeaveMs = 1000;

// The handle of a device's graph memory: an address that no driver gives out.
CUmemoryPool graph_handle(CUdevice device) {
  return reinterpret_cast<CUmemoryPool>(static_cast<uintptr_t>(device) + 1);
}

// -1: an ordinary pool.
CUdevice graph_device(CUmemoryPool handle) {
  const auto number = reinterpret_cast<uintptr_t>(handle);
  return number >= 1 && number <= kDevices ? static_cast<CUdevice>(number - 1) : -1;
}

bool read_graph_attribute(CUdevice device, CUmemPool_attribute attribute, cuuint64_t* bytes) {
  const CUgraphMem_attribute which = attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT
                                         ? CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT
                                         : CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT;
  return GPUROTA_OWN(cuDeviceGetGraphMemAttribute)(device, which, bytes) == CUDA_SUCCESS;
}

// While an object lives, the pool's handle may be passed to the driver, if may() says so.
class Asking {
 public:
  explicit Asking(Pool& pool) : pool_(pool) {
    pool_.asking.fetch_add(1);
    const bool ends = pool_.destroyed.load();  // read before the handle, which may be reused
    handle_ = pool_.pool.load();
    may_ = !ends && handle_ != nullptr && handle_ != kGone;
  }
  ~Asking() { pool_.asking.fetch_sub(1); }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;
  bool may() const { return may_; }
  CUmemoryPool handle() const { return handle_; }

 private:
  Pool& pool_;
  CUmemoryPool handle_ = nullptr;
  bool may_ = false;
};

bool read_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, int64_t* value) {
  if (pool == nullptr || pool == kGone) return false;
  const CUdevice device = graph_device(pool);
  cuuint64_t bytes = 0;
  if (device >= 0) {
    if (!read_graph_attribute(device, attribute, &bytes)) return false;
  } else {
    const RelaxedCapture relaxed;
    if (GPUROTA_OWN(cuMemPoolGetAttribute)(relaxed, pool, attribute, &bytes) != CUDA_SUCCESS) {
      return false;
    }
  }
  *value = static_cast<int64_t>(bytes);
  return true;
}

std::atomic<uint32_t>& unit_of(State& s, const Pool& pool) {
  Slot& slot = s.slots[pool.slot];
  const bool of_graphs = graph_device(pool.pool.load(std::memory_order_relaxed)) >= 0;
  return of_graphs ? slot.graph_unit_log2 : slot.pool_unit_log2;
}

void learn_unit(State& s, const Pool& pool, int64_t reserved) {
  if (reserved == 0) return;
  auto low = static_cast<uint32_t>(__builtin_ctzll(static_cast<uint64_t>(reserved)));
  if (low >= kLargestUnitLog2) return;
  if (low < kSmallestUnitLog2) low = kSmallestUnitLog2;
  std::atomic<uint32_t>& unit = unit_of(s, pool);
  const uint32_t known = unit.load(std::memory_order_relaxed);
  if (known == 0 || low < known) unit.store(low, std::memory_order_relaxed);
}

// The bytes by which the pool has grown since the last reading. Call with the pool's lock held. A
// thread that is inside (`own`) has reserved the growth, so only such a thread charges it.
int64_t read_growth(State& s, Pool& pool, bool own) {
  int64_t reserved = 0;
  const CUmemoryPool handle = pool.pool.load(std::memory_order_relaxed);
  if (pool.destroyed.load() && !own) return 0;  // only a thread inside may still read
  if (!read_attribute(handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved)) return 0;
  const int64_t grown = reserved - pool.charged.load(std::memory_order_relaxed);
  if (grown > 0 && !own && pool.inside.load() > 0) return 0;
  if (grown != 0) learn_unit(s, pool, reserved);
  return grown;
}

// Whether the pool is the default pool of `device`, which the driver made by itself.
bool is_default_pool(CUmemoryPool handle, CUdevice device) {
  CUmemoryPool pool = nullptr;
  return GPUROTA_OWN(cuDeviceGetDefaultMemPool)(&pool, device) == CUDA_SUCCESS && pool == handle;
}

// Since CUDA 13 there is a default pool of managed memory too.
bool is_managed_pool(CUmemoryPool handle, CUdevice device) {
  CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  CUmemoryPool pool = nullptr;
  return GPUROTA_OWN(cuMemGetDefaultMemPool)(&pool, &location, CU_MEM_ALLOCATION_TYPE_MANAGED) ==
             CUDA_SUCCESS &&
         pool == handle;
}

// Records a pool that the driver made by itself.
Pool* learn_pool(State& s, CUmemoryPool handle, bool* foreign) {
  int count = 0;
  if (GPUROTA_OWN(cuDeviceGetCount)(&count) != CUDA_SUCCESS) return nullptr;
  for (CUdevice device = 0; device < count; ++device) {
    const bool managed = !is_default_pool(handle, device);
    if (managed && !is_managed_pool(handle, device)) continue;
    const int slot = slot_of_device(device);
    *foreign = slot < 0;
    return slot >= 0 ? add_pool(s, handle, slot, false, managed) : nullptr;
  }
  return nullptr;
}

}  // namespace

// The reading and the charge are one step under the pool's lock, so charges are made in the order
// of the readings. If a reading shows that the pool has released memory, these bytes are in the
// headroom before another thread can read. Otherwise the other thread could accept a refusal
// although the released bytes are about to reach the headroom.
Charged charge_growth(State& s, Pool& pool, int64_t taken, bool own) {
  const Slot& slot = s.slots[pool.slot];
  Lock lock(pool.mutex);
  const int64_t grown = read_growth(s, pool, own);
  if (taken != grown) credit_headroom(s, pool.slot, taken - grown);
  if (grown != 0) pool.charged.store(pool.charged.load(std::memory_order_relaxed) + grown);
  return {grown, slot.headroom.load()};
}

// The reading includes the caller's memory. A charge that equals the reading includes that memory
// too, unless the charge is from an earlier reading. A thread with an earlier reading holds the
// lock until its charge is stored, so is_free() would be false. The charge is stored last under the
// lock, so a stored charge has been paid.
bool is_charged(const Pool& pool) {
  int64_t reserved = 0;
  const CUmemoryPool handle = pool.pool.load(std::memory_order_relaxed);
  return pool.mutex.is_free() &&
         read_attribute(handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved) &&
         reserved == pool.charged.load();
}

static Pool* find_pool(State& s, CUmemoryPool handle, bool* ends) {
  const uint32_t used = memory_of(s).pools.used.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < used; ++i) {
    Pool& p = memory_of(s).pools.entries[i];
    if (p.pool.load(std::memory_order_acquire) != handle) continue;
    if (!p.destroyed.load()) return &p;
    *ends = true;
  }
  return nullptr;
}

Pool* find_pool(State& s, CUmemoryPool handle) {
  bool ends = false;
  return find_pool(s, handle, &ends);
}

Pool* add_pool(State& s, CUmemoryPool handle, int slot, bool tracked, bool stays) {
  Lock lock(memory_of(s).pools.mutex);
  if (Pool* known = find_pool(s, handle)) return known;
  for (uint32_t i = 0; i < kPools; ++i) {
    Pool& p = memory_of(s).pools.entries[i];
    if (p.pool.load() != nullptr) continue;
    p.charged.store(0);
    p.live.store(0);
    p.ending.store(0);
    p.used_high.store(0);
    p.held_high.store(0);
    p.stuck_size.store(0);
    p.slot = slot;
    p.tracked = tracked;
    p.stays = stays;
    p.destroyed = false;
    p.pool.store(handle, std::memory_order_release);
    if (i >= memory_of(s).pools.used.load())
      memory_of(s).pools.used.store(i + 1, std::memory_order_release);
    return &p;
  }
  GPUROTA_DEBUG("more than %zu memory pools: another could not be counted", kPools);
  return nullptr;
}

Pool* known_pool(State& s, CUmemoryPool handle, bool* foreign, bool* ends) {
  *foreign = false;
  bool ending = false;
  Pool* pool = find_pool(s, handle, &ending);
  if (ends != nullptr) *ends = pool == nullptr && ending;
  return pool != nullptr || ending ? pool : learn_pool(s, handle, foreign);
}

Pool* graph_pool(State& s, CUdevice device) {
  if (device < 0 || device >= static_cast<CUdevice>(kDevices)) return nullptr;
  const CUmemoryPool handle = graph_handle(device);
  if (Pool* pool = find_pool(s, handle)) return pool;
  const int slot = slot_of_device(device);
  return slot >= 0 ? add_pool(s, handle, slot, false) : nullptr;
}

int64_t growth_for(State& s, const Pool& pool, uint64_t size) {
  uint32_t unit_log2 = unit_of(s, pool).load(std::memory_order_relaxed);
  if (unit_log2 == 0) unit_log2 = kLargestUnitLog2;
  const uint64_t unit = uint64_t{1} << unit_log2;
  constexpr uint64_t kMost = uint64_t{1} << 62;
  return static_cast<int64_t>(size > kMost ? kMost : (size + unit - 1) & ~(unit - 1));
}

bool may_serve(Pool& pool, uint64_t size) {
  const Asking asking(pool);
  int64_t reserved = 0;
  int64_t in_use = 0;
  if (!asking.may() ||
      !read_attribute(asking.handle(), CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved) ||
      !read_attribute(asking.handle(), CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &in_use) ||
      reserved - in_use < static_cast<int64_t>(size)) {
    return false;
  }
  const int64_t stuck = pool.stuck_size.load(std::memory_order_relaxed);
  return stuck == 0 || static_cast<int64_t>(size) < stuck ||
         in_use < pool.stuck_in_use.load(std::memory_order_relaxed);
}

void was_in_pieces(Pool& pool, uint64_t size) {
  const Asking asking(pool);
  int64_t in_use = 0;
  if (!asking.may()) return;
  read_attribute(asking.handle(), CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &in_use);
  pool.stuck_in_use.store(in_use, std::memory_order_relaxed);
  pool.stuck_size.store(static_cast<int64_t>(size), std::memory_order_relaxed);
}

bool lease_may_have(State& s, int slot, int64_t bytes) {
  const gpurota_page* page = s.page.load(std::memory_order_acquire);
  if (page == nullptr) return false;
  const uint64_t available = __atomic_load_n(&page->grant[slot].available_bytes, __ATOMIC_RELAXED);
  const int64_t headroom = s.slots[slot].headroom.load(std::memory_order_relaxed);
  return headroom + static_cast<int64_t>(available) >= bytes;
}

void trim(Pool& pool) {
  const RelaxedCapture relaxed;
  const Asking asking(pool);
  if (!asking.may()) return;
  const CUdevice device = graph_device(asking.handle());
  pool.trims.fetch_add(1);
  if (device >= 0) {
    // A thread that launches marks itself inside before it reads `trims`, so that one of the two
    // threads sees the other.
    if (pool.inside.load() == 0) GPUROTA_OWN(cuDeviceGraphMemTrim)(device);
  } else {
    GPUROTA_OWN(cuMemPoolTrimTo)(relaxed, asking.handle(), 0);
  }
  pool.trims.fetch_add(1);
}

void begin_destroying(Pool& pool) {
  {
    Lock lock(pool.mutex);  // the pool is read with this lock held
    pool.destroyed.store(true);
  }
  ErrnoGuard guard;
  for (int i = 0; i < kLeaveMs && (pool.inside.load() > 0 || pool.asking.load() > 0); ++i) {
    sleep_ms(1);
  }
}

// No thread uses a pool that it finds destroyed, so each condition below, once true, stays true.
// Each thread checks all conditions after it has changed something, so the thread with the last
// change finds all of them true. If several threads do, the first to take the lock removes the
// pool.
void remove_if_gone(Pool& pool) {
  if (pool.pool.load() != kGone) return;
  int64_t charged = 0;
  int slot = 0;
  {
    Lock lock(pool.mutex);
    if (pool.pool.load() != kGone || pool.live.load() != 0 || pool.inside.load() != 0) return;
    charged = pool.charged.exchange(0);
    slot = pool.slot;
    pool.pool.store(nullptr);
  }
  put(slot, charged);
}

void credit_pool_allocation(State& s, const Allocation& allocation) {
  Pool& pool = memory_of(s).pools.entries[allocation.pool - 1];
  const auto size = static_cast<int64_t>(allocation.size);
  if (pool.live.fetch_sub(size) == size) remove_if_gone(pool);
}

void settle_pools(int slot) {
  State& s = state();
  const uint32_t used = memory_of(s).pools.used.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < used; ++i) {
    Pool& pool = memory_of(s).pools.entries[i];
    if (pool.pool.load() == nullptr || pool.slot != slot) continue;
    if (charge_growth(s, pool, 0, false).grown != 0) put(slot, 0);  // shows it in the page
  }
}

void reclaim_pools(int slot) {
  State& s = state();
  const uint32_t used = memory_of(s).pools.used.load(std::memory_order_acquire);
  bool any = false;
  for (uint32_t i = 0; i < used; ++i) {
    Pool& pool = memory_of(s).pools.entries[i];
    if (pool.pool.load() == nullptr || pool.slot != slot || pool.destroyed.load()) continue;
    trim(pool);
    any = true;
  }
  if (any) settle_pools(slot);
}

}  // namespace gpurota::interposer
