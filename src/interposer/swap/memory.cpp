#include "interposer/swap/memory.h"

#include "interposer/debug.h"
#include "interposer/gated.h"
#include "interposer/ledger.h"
#include "interposer/linear.h"
#include "interposer/own_calls.h"
#include "interposer/swap/devices.h"
#include "interposer/swap/grants.h"
#include "interposer/swap/pool_figures.h"
#include "interposer/swap/room.h"
#include "interposer/swap/share.h"
#include "interposer/swap/streams.h"

namespace gpurota::interposer {
namespace {

constexpr uint64_t kPitchBytes = 512;
constexpr int64_t kPatienceMs = 1000;  // for what others freed in stream order

void note(State& s, const Place& place, uint64_t address, uint64_t size, uint32_t serial,
          uint16_t pool) {
  count(&s.slots[place.slot].allocations);
  remember(s, address, {size, serial, pool, static_cast<uint8_t>(place.slot), true});
  note_given(s, pool);
  s.mirror(place.slot);
}

CUresult allocate(const Place& place, uint64_t size, uint16_t pool, CUdeviceptr* out) {
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
  note(s, place, address, size, place.context, pool);
  return CUDA_SUCCESS;
}

void end(State& s, uint64_t address, int slot) {
  SwapFreed freed{};
  const RelaxedCapture relaxed;
  s.swap.devices[slot].space.free(address, &freed);
  s.swap.given_back.fetch_add(1);  // also what the mover still has to end, and tell
  swap_shrink(slot, freed.released, freed.dropped, freed.wired, freed.hosted);
}

void end(State& s, const FreedLater& later) {
  end(s, later.address, later.slot);
  note_ending(s, later.pool, -static_cast<int64_t>(later.size));
  note_ended(s, later.pool, later.size);
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
  if (event != nullptr) GPUROTA_OWN(cuEventDestroy_v2)(event);
}

bool forget_swapped(State& s, uint64_t address, Allocation* out) {
  Allocation known{};
  if (!forget(s, address, &known)) return false;
  if (known.moves) {
    *out = known;
    return true;
  }
  remember(s, address, known);
  return false;
}

// Of a stream with a name; who frees need not have its context current, or any. Else the current one.
CUcontext context_of_stream(State& s, CUstream stream) {
  CUcontext context = nullptr;
  const Outside named = Outside::unless_default(stream);
  if (GPUROTA_OWN(cuStreamGetCtx)(named, stream, &context) == CUDA_SUCCESS) return context;
  context = current_context();
  if (context != nullptr) return context;
  Lock lock(s.swap.streams.mutex);
  const KnownStream* known = s.swap.streams.streams.find(reinterpret_cast<uint64_t>(stream));
  return known != nullptr ? known->context : nullptr;
}

// Behind what the stream has to do now; with its context current.
CUresult make_event(CUstream stream, bool per_thread, CUevent* out) {
  const Outside outside = Outside::unless_captured(stream, per_thread);
  CUresult result = GPUROTA_OWN(cuEventCreate)(out, CU_EVENT_DISABLE_TIMING);
  if (result != CUDA_SUCCESS) return result;
  result = per_thread ? GPUROTA_OWN(cuEventRecord_ptsz)(outside, *out, stream)
                      : GPUROTA_OWN(cuEventRecord)(outside, *out, stream);
  if (result != CUDA_SUCCESS) destroy_event(*out);
  return result;
}

}  // namespace

CUresult swap_allocate(const Place& place, uint64_t size, CUdeviceptr* out) {
  return allocate(place, size, 0, out);
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
  const CUresult result = allocate(place, bytes, 0, out);
  if (result == CUDA_SUCCESS) *pitch = row;
  return result;
}

namespace {

// What was freed and is of the same room becomes the memory at `out`.
void use_again(State& s, const Place& place, uint64_t size, uint16_t pool, const FreedLater& again,
               CUdeviceptr* out) {
  destroy_event(again.event);
  note_ending(s, again.pool, -static_cast<int64_t>(again.size));
  note_ended(s, again.pool, again.size);
  *out = again.address;
  note(s, place, again.address, size, again.serial, pool);
}

// What another stream has freed, and is done with.
bool take_done(State& s, const Place& place, uint64_t size, FreedLater* out) {
  const RelaxedCapture relaxed;
  const auto is_done = [&](const FreedLater& later) {
    if (later.event == nullptr || later.slot != place.slot || !same_room(later.size, size)) {
      return false;
    }
    const InContext in(later.context);
    return GPUROTA_OWN(cuEventQuery)(relaxed, Outside::ours(), later.event) == CUDA_SUCCESS;
  };
  return take_freed(s.swap, is_done, out);
}

// As the driver's pools do when they may not grow: the stream waits for what the memory was freed behind.
bool use_behind_another(State& s, const Place& place, uint64_t size, CUstream stream,
                        bool per_thread, uint16_t pool, CUdeviceptr* out) {
  const GatePass pass(GateClass::kSubmits, stream, per_thread);
  const Outside outside = Outside::unless_captured(stream, per_thread);
  FreedLater again{};
  const auto fits = [&](const FreedLater& later) {
    return later.event != nullptr && later.slot == place.slot && same_room(later.size, size);
  };
  if (pass.refused() || !outside || !take_freed(s.swap, fits, &again)) return false;
  const CUresult result = per_thread
                              ? GPUROTA_OWN(cuStreamWaitEvent_ptsz)(outside, stream, again.event, 0)
                              : GPUROTA_OWN(cuStreamWaitEvent)(outside, stream, again.event, 0);
  if (result == CUDA_SUCCESS) {
    use_again(s, place, size, pool, again, out);
    return true;
  }
  if (!keep_freed(s.swap, again)) destroy_event(again.event);
  return false;
}

// Of what was freed in stream order some ends by itself: waits for that, shortly, as its stream may wait for us. Whether
// anything was given back since `before` was read.
bool wait_for_freed(State& s, uint64_t before) {
  ErrnoGuard guard;
  const int64_t deadline = now_ms() + kPatienceMs;
  for (;;) {
    swap_end_freed_soon(s);
    const bool more = s.swap.freed_count.load() != 0 || s.swap.ends_under_way.load() != 0;
    if (s.swap.given_back.load() != before) return true;
    if (!more || now_ms() >= deadline) return false;
    sleep_ms(1);
  }
}

}  // namespace

CUresult swap_allocate_async(const Place& place, uint64_t size, CUstream stream, bool per_thread,
                             uint16_t pool, CUdeviceptr* out) {
  State& s = state();
  if (out == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t key = key_of_stream(stream, per_thread);
  FreedLater again{};
  const auto fits = [&](const FreedLater& later) {
    return later.stream == key && later.slot == place.slot && same_room(later.size, size);
  };
  if (take_freed(s.swap, fits, &again) || take_done(s, place, size, &again)) {
    use_again(s, place, size, pool, again, out);
    return CUDA_SUCCESS;
  }
  for (int round = 1;; ++round) {
    const uint64_t before = s.swap.given_back.load();
    const CUresult result = allocate(place, size, pool, out);
    if (result != CUDA_ERROR_OUT_OF_MEMORY || round == kTriesForRoom) return result;
    if (use_behind_another(s, place, size, stream, per_thread, pool, out)) return CUDA_SUCCESS;
    if (!wait_for_freed(s, before)) return result;
  }
}

bool swap_free(State& s, uint64_t address, CUresult* result) {
  Allocation known{};
  if (!forget_swapped(s, address, &known)) return false;
  *result = CUDA_SUCCESS;
  swap_unshare(s, address);
  // While memory moves, nothing uses it; and a block that is being moved is the mover's to end.
  const uint64_t before = s.swap.freed_last.load();
  note_ending(s, known.pool, static_cast<int64_t>(known.size));
  const FreedLater later{address,       known.size, 0,          nullptr,   nullptr,
                         known.context, 0,          known.pool, known.slot};
  if (s.swap.drained.load(std::memory_order_acquire) != 0 || wait_for_work(s)) {
    swap_end_freed(s, before);
    end(s, later);
  } else if (!keep_freed(s.swap, later)) {
    *result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  s.mirror(known.slot);
  return true;
}

bool swap_free_async(State& s, uint64_t address, CUstream stream, bool per_thread,
                     CUresult* result) {
  Allocation known{};
  if (!forget_swapped(s, address, &known)) return false;
  // A graph frees what was allocated in it, and nothing else (abi/captures.tsv).
  CUevent event = nullptr;
  CUcontext context = context_of_stream(s, stream);
  const InContext in(context);
  *result = is_capturing(stream, per_thread) ? CUDA_ERROR_INVALID_VALUE
                                             : make_event(stream, per_thread, &event);
  if (*result == CUDA_SUCCESS) {
    swap_unshare(s, address);  // before another can have it
    note_ending(s, known.pool, static_cast<int64_t>(known.size));
    if (keep_freed(s.swap, {address, known.size, key_of_stream(stream, per_thread), event, context,
                            known.context, 0, known.pool, known.slot})) {
      return true;
    }
    note_ending(s, known.pool, -static_cast<int64_t>(known.size));
    destroy_event(event);
    *result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  remember(s, address, known);
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

namespace {

// While it lives, what was freed may be in nobody's table, and not have ended.
class EndsUnderWay {
 public:
  explicit EndsUnderWay(Swap& swap) : swap_(swap) { swap_.ends_under_way.fetch_add(1); }
  ~EndsUnderWay() { swap_.ends_under_way.fetch_sub(1); }
  EndsUnderWay(const EndsUnderWay&) = delete;
  EndsUnderWay& operator=(const EndsUnderWay&) = delete;

 private:
  Swap& swap_;
};

}  // namespace

bool swap_end_freed(State& s, uint64_t done) {
  if (s.swap.freed_count.load(std::memory_order_relaxed) == 0) return false;
  const EndsUnderWay ends(s.swap);
  FreedLater later{};
  bool any = false;
  // The event ends under the lock: who ends its context takes that first (swap_forget_events).
  const auto is_over = [&](FreedLater& candidate) {
    if (candidate.number > done) return false;
    destroy_event(candidate.event);
    return true;
  };
  while (take_freed(s.swap, is_over, &later)) {
    end(s, later);
    any = true;
  }
  return any;
}

// Once all work that is there now is over, if that is so by the deadline.
static bool end_freed_by(State& s, int64_t deadline_ms) {
  if (s.swap.freed_count.load(std::memory_order_relaxed) == 0) return false;
  const uint64_t before = s.swap.freed_last.load();
  const bool drained = s.swap.drained.load(std::memory_order_acquire) != 0;
  if (!drained && !wait_for_work(s, deadline_ms)) return false;
  return swap_end_freed(s, before);
}

bool swap_end_freed_if_idle(State& s) { return end_freed_by(s, now_ms()); }

bool swap_end_freed_soon(State& s) { return end_freed_by(s, now_ms() + kPatienceMs); }

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
          if (a.context == serial && a.moves) found = ptr;
        });
        if (found == 0 || !shard.map.take(found, &allocation)) break;
        shard.live.store(shard.map.size(), std::memory_order_relaxed);
      }
      swap_unshare(s, found);
      end(s, found, allocation.slot);
      note_ended(s, allocation.pool, allocation.size);
    }
  }
  FreedLater later{};
  while (take_freed(
      s.swap, [=](const FreedLater& candidate) { return candidate.serial == serial; }, &later)) {
    end(s, later);
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
