#include "interposer/swap/memory.h"

#include "interposer/debug.h"
#include "interposer/driver.h"
#include "interposer/gated.h"
#include "interposer/ledger.h"
#include "interposer/linear.h"
#include "interposer/pool_charge.h"
#include "interposer/swap/devices.h"
#include "interposer/swap/grants.h"
#include "interposer/swap/room.h"
#include "interposer/swap/share.h"
#include "interposer/swap/streams.h"

namespace gpurota::interposer {
namespace {

constexpr uint64_t kPitchBytes = 512;

CUcontext current_context() {
  const auto get = GPUROTA_REAL(cuCtxGetCurrent);
  CUcontext context = nullptr;
  if (get != nullptr) get(&context);
  return context;
}

void note(State& s, const Place& place, uint64_t address, uint64_t size, uint32_t serial) {
  count(&s.slots[place.slot].allocations);
  remember(s, address, {size, serial, kSwapped, static_cast<uint8_t>(place.slot)});
  s.mirror(place.slot);
}

CUresult allocate(const Place& place, uint64_t size, uint32_t serial, CUdeviceptr* out) {
  State& s = state();
  if (out == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  SwapDevice* device = swap_device(s, place.slot, current_context());
  const uint64_t cost = SwapSpace::cost(size);
  if (device == nullptr || cost == UINT64_MAX) return refuse(place.slot, size);
  uint64_t address = 0;
  if (!device->space.allocate_shared(size, &address)) {
    const auto make = [&](const SwapRoom& room, bool* kept) {
      const RelaxedCapture relaxed;
      uint64_t took = 0;
      const CUresult made = device->space.allocate(size, &address, &took, room.hosted);
      *kept = took != 0;
      return made;
    };
    const auto refused = [&] { return refuse(place.slot, size); };
    const CUresult result = swap_make(place.slot, cost, true, make, refused);
    if (result != CUDA_SUCCESS) return result;
  }
  *out = address;
  note(s, place, address, size, serial);
  return CUDA_SUCCESS;
}

void end(State& s, uint64_t address, int slot) {
  SwapFreed freed{};
  const RelaxedCapture relaxed;
  s.swap.devices[slot].space.free(address, &freed);
  swap_shrink(slot, freed.released, freed.dropped, freed.wired, freed.hosted);
}

bool same_room(uint64_t a, uint64_t b) {
  if (a < kSmall || b < kSmall)
    return (a + kGranule - 1) / kGranule == (b + kGranule - 1) / kGranule;
  return SwapSpace::cost(a) == SwapSpace::cost(b);
}

// Takes the first that `wanted` says yes to out of what was freed in stream order. It may ask the driver about
// an event: no callback of the driver's comes here, so holding the lock meanwhile harms nobody.
template <typename Wanted>
bool take_freed(Swap& swap, Wanted wanted, FreedLater* out) {
  if (swap.freed_count.load(std::memory_order_relaxed) == 0) return false;
  Lock lock(swap.freed_mutex);
  for (uint32_t i = 1; i < swap.freed.end(); ++i) {
    if (!swap.freed.is_used(i) || !wanted(swap.freed[i])) continue;
    *out = swap.freed[i];
    swap.freed.give_back(i);
    swap.freed_count.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }
  return false;
}

bool keep_freed(Swap& swap, const FreedLater& later) {
  Lock lock(swap.freed_mutex);
  const uint32_t i = swap.freed.take();
  if (i == 0) return false;
  swap.freed[i] = later;
  swap.freed[i].number = swap.freed_last.fetch_add(1) + 1;
  swap.freed_count.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void destroy_event(CUevent event) {
  const auto destroy = GPUROTA_REAL(cuEventDestroy_v2);
  if (event != nullptr && destroy != nullptr) destroy(event);
}

bool forget_swapped(State& s, uint64_t address, Allocation* out) {
  Allocation known{};
  if (!forget(s, address, &known)) return false;
  if (known.pool == kSwapped) {
    *out = known;
    return true;
  }
  remember(s, address, known);
  return false;
}

CUevent make_event(CUstream stream, bool per_thread) {
  const auto create = GPUROTA_REAL(cuEventCreate);
  const auto record = per_thread ? GPUROTA_REAL(cuEventRecord_ptsz) : GPUROTA_REAL(cuEventRecord);
  CUevent event = nullptr;
  const RelaxedCapture relaxed;
  if (create == nullptr || record == nullptr ||
      create(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
    return nullptr;
  }
  if (record(event, stream) == CUDA_SUCCESS) return event;
  destroy_event(event);
  return nullptr;
}

}  // namespace

CUresult swap_allocate(const Place& place, uint64_t size, CUdeviceptr* out) {
  return allocate(place, size, place.context, out);
}

CUresult swap_allocate_pitch(const Place& place, uint64_t width, uint64_t height, unsigned element,
                             CUdeviceptr* out, size_t* pitch) {
  const bool known = element == 4 || element == 8 || element == 16;
  if (out == nullptr || pitch == nullptr || width == 0 || height == 0 || !known) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const uint64_t row = (width + kPitchBytes - 1) & ~(kPitchBytes - 1);
  uint64_t bytes = 0;
  if (row < width || __builtin_mul_overflow(row, height, &bytes)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = allocate(place, bytes, place.context, out);
  if (result == CUDA_SUCCESS) *pitch = row;
  return result;
}

CUresult swap_allocate_async(const Place& place, uint64_t size, CUstream stream, bool per_thread,
                             CUdeviceptr* out) {
  State& s = state();
  if (out == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t key = key_of_stream(stream, per_thread);
  FreedLater again{};
  const auto fits = [&](const FreedLater& later) {
    return later.stream == key && later.slot == place.slot && same_room(later.size, size);
  };
  if (take_freed(s.swap, fits, &again)) {
    destroy_event(again.event);
    *out = again.address;
    note(s, place, again.address, size, again.serial);
    return CUDA_SUCCESS;
  }
  swap_end_freed(s, 0);
  return allocate(place, size, place.context, out);
}

bool swap_free(State& s, uint64_t address, CUresult* result) {
  Allocation known{};
  if (!forget_swapped(s, address, &known)) return false;
  *result = CUDA_SUCCESS;
  swap_unshare(s, address);
  // While memory moves, nothing uses it; and a block that is being moved is the mover's to end.
  const uint64_t before = s.swap.freed_last.load();
  if (s.swap.drained.load(std::memory_order_acquire) != 0 || wait_for_work(s)) {
    swap_end_freed(s, before);
    end(s, address, known.slot);
  } else if (!keep_freed(s.swap, {address, known.size, 0, nullptr, nullptr, known.context, 0,
                                  known.slot})) {
    *result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  s.mirror(known.slot);
  return true;
}

bool swap_free_async(State& s, uint64_t address, CUstream stream, bool per_thread,
                     CUresult* result) {
  Allocation known{};
  if (!forget_swapped(s, address, &known)) return false;
  // A graph cannot free what moves.
  if (is_capturing(stream, per_thread)) {
    remember(s, address, known);
    *result = CUDA_ERROR_NOT_SUPPORTED;
    return true;
  }
  CUevent event = make_event(stream, per_thread);
  const FreedLater later{address, known.size,        key_of_stream(stream, per_thread),
                         event,   current_context(), known.context,
                         0,       known.slot};
  swap_unshare(s, address);  // before another can have it
  if (event == nullptr || !keep_freed(s.swap, later)) {
    destroy_event(event);
    remember(s, address, known);
    *result = CUDA_ERROR_INVALID_HANDLE;
    return true;
  }
  *result = CUDA_SUCCESS;
  return true;
}

// Another may get its handle, and is not ordered after what it did.
void swap_stream_gone(State& s, uint64_t key) {
  Swap& swap = s.swap;
  if (swap.freed_count.load(std::memory_order_relaxed) == 0) return;
  Lock lock(swap.freed_mutex);
  for (uint32_t i = 1; i < swap.freed.end(); ++i) {
    if (swap.freed.is_used(i) && swap.freed[i].stream == key) swap.freed[i].stream = 0;
  }
}

void swap_end_freed(State& s, uint64_t done) {
  const auto query = GPUROTA_REAL(cuEventQuery);
  if (query == nullptr) return;
  const RelaxedCapture relaxed;
  FreedLater later{};
  // The event ends under the lock: who ends its context takes that first (swap_forget_events).
  const auto is_over = [&](FreedLater& candidate) {
    if (candidate.event == nullptr) return candidate.number <= done;
    const InContext in(candidate.context);
    if (query(candidate.event) == CUDA_ERROR_NOT_READY) return false;
    destroy_event(candidate.event);
    return true;
  };
  while (take_freed(s.swap, is_over, &later)) end(s, later.address, later.slot);
}

void swap_forget_events(State& s) {
  Swap& swap = s.swap;
  if (swap.freed_count.load(std::memory_order_relaxed) == 0) return;
  Lock lock(swap.freed_mutex);
  for (uint32_t i = 1; i < swap.freed.end(); ++i) {
    FreedLater& later = swap.freed[i];
    if (!swap.freed.is_used(i) || later.event == nullptr) continue;
    destroy_event(later.event);
    later.event = nullptr;
    later.stream = 0;
    later.number = swap.freed_last.fetch_add(1) + 1;
  }
}

void swap_free_context(State& s, uint32_t serial) {
  if (serial == 0) return;
  for (PointerShard& shard : s.pointers) {
    for (;;) {
      uint64_t found = 0;
      Allocation allocation{};
      {
        Lock lock(shard.mutex);
        shard.map.for_each([&](uint64_t ptr, const Allocation& a) {
          if (a.context == serial && a.pool == kSwapped) found = ptr;
        });
        if (found == 0 || !shard.map.take(found, &allocation)) break;
        shard.live.store(shard.map.size(), std::memory_order_relaxed);
      }
      swap_unshare(s, found);
      end(s, found, allocation.slot);
    }
  }
  FreedLater later{};
  while (take_freed(
      s.swap, [=](const FreedLater& candidate) { return candidate.serial == serial; }, &later)) {
    end(s, later.address, later.slot);
  }
}

// Asked for as wired before it is given back as movable, so that it is counted all the time: for that moment twice.
CUresult swap_wire(State& s, int slot, uint64_t address) {
  SwapSpace& space = s.swap.devices[slot].space;
  SwapBacking backing{};
  if (!space.find_backing(address, &backing)) return CUDA_ERROR_INVALID_VALUE;
  if (backing.hosted != 0) return refuse(slot, backing.hosted);
  const uint64_t asked = backing.movable;
  if (asked == 0) return CUDA_SUCCESS;
  if (swap_grow(slot, GPUROTA_SWAP_WIRED, asked, nullptr) != Answer::kYes) {
    return refuse(slot, asked);
  }
  uint64_t stays = 0;
  bool passed = false;
  {
    const GatePass pass(GateClass::kResidency, nullptr, false);
    passed = !pass.refused();
    if (passed) stays = space.wire(address);
  }
  swap_shrink(slot, stays, 0, asked - stays);
  GPUROTA_DEBUG("slot %d: %llu bytes that the program has given away do not move any more", slot,
                static_cast<unsigned long long>(stays));
  return passed ? CUDA_SUCCESS : kNotLet;
}

bool swap_find(State& s, uint64_t address, SwapFound* out) {
  for (uint32_t slot = 0; slot < s.link.slot_count; ++slot) {
    SwapDevice& device = s.swap.devices[slot];
    FoundRange range{};
    if (device.ready.load(std::memory_order_acquire) == 0) continue;
    if (!device.space.find(address, &range)) continue;
    if (!find_allocation(s, range.address, &out->allocation)) return false;  // freed, not ended
    out->base = range.address;
    return address < range.address + out->allocation.size;
  }
  return false;
}

}  // namespace gpurota::interposer
