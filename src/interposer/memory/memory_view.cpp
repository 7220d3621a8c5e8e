// Shows a program its lease's limit as the size of a GPU, so that frameworks that choose how much
// to allocate by that size just work.
#include "interposer/memory/memory_view.h"

#include "interposer/account/device.h"
#include "interposer/account/link.h"
#include "interposer/account/swap_table.h"
#include "interposer/driver/driver.h"
#include "interposer/memory/pool_charge.h"

namespace gpurota::interposer {
namespace {

uint64_t load(const uint64_t* field) { return __atomic_load_n(field, __ATOMIC_RELAXED); }

uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

// The daemon's figures; if the daemon is away, the limit that it last showed in the page.
void figures(State& s, int slot, uint64_t* limit, uint64_t* available) {
  if (query(slot, limit, available)) return;
  const gpurota_page* page = s.page.load(std::memory_order_acquire);
  *limit = load(&page->grant[slot].limit_bytes);
  *available = 0;  // without the daemon, nobody grants memory
}

}  // namespace

MemoryView view_of_slot(int slot, uint64_t total, uint64_t free) {
  State& s = state();
  uint64_t limit = 0;
  uint64_t available = 0;
  settle_pools(slot);  // pools shrink unseen as streams are synchronised
  if (swapping()) g_swap.end_freed_if_idle(s);
  figures(s, slot, &limit, &available);
  const int64_t headroom = s.slots[slot].headroom.load(std::memory_order_relaxed);
  if (headroom > 0) available += static_cast<uint64_t>(headroom);
  // Memory of other leases can be evicted, so what the driver has free does not matter. In an
  // oversize lease, the limit may be above the GPU's size.
  if (swapping()) return {limit, smaller(available, limit)};
  const uint64_t size = smaller(total, limit);
  return {size, smaller(smaller(free, available), size)};
}

namespace {

template <typename Size>
CUresult mem_info(CUresult result, Size* free, Size* total) {
  if (result != CUDA_SUCCESS || free == nullptr || total == nullptr) return result;
  const Place place = current_place();
  if (place.kind != Place::Kind::kSlot) return result;
  const MemoryView view = view_of_slot(place.slot, *total, *free);
  *total = static_cast<Size>(view.total);
  *free = static_cast<Size>(view.free);
  return result;
}

template <typename Size>
CUresult total_mem(CUresult result, Size* bytes, CUdevice device) {
  if (result != CUDA_SUCCESS || bytes == nullptr) return result;
  const int slot = slot_of_device(device);
  if (slot < 0) return result;
  const gpurota_page* page = state().page.load(std::memory_order_acquire);
  const uint64_t limit = load(&page->grant[slot].limit_bytes);
  *bytes = static_cast<Size>(swapping() ? limit : smaller(*bytes, limit));
  return result;
}

}  // namespace
}  // namespace gpurota::interposer

using gpurota::interposer::mem_info;
using gpurota::interposer::total_mem;

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  GPUROTA_ENTER(cuMemGetInfo_v2, free, total);
  return mem_info(real(free, total), free, total);
}

CUresult cuMemGetInfo(unsigned int* free, unsigned int* total) {
  GPUROTA_ENTER(cuMemGetInfo, free, total);
  return mem_info(real(free, total), free, total);
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  GPUROTA_ENTER(cuDeviceTotalMem_v2, bytes, device);
  return total_mem(real(bytes, device), bytes, device);
}

CUresult cuDeviceTotalMem(unsigned int* bytes, CUdevice device) {
  GPUROTA_ENTER(cuDeviceTotalMem, bytes, device);
  return total_mem(real(bytes, device), bytes, device);
}
