#include "interposer/swap/swap_allocate.h"

#include "interposer/driver/own_calls.h"
#include "interposer/gate/gated.h"
#include "interposer/gate/streams.h"
#include "interposer/memory/linear.h"
#include "interposer/memory/pool_figures.h"
#include "interposer/memory/reserve.h"
#include "interposer/os/debug.h"
#include "interposer/swap/devices.h"
#include "interposer/swap/freed.h"
#include "interposer/swap/grow.h"
#include "interposer/swap/share.h"
#include "interposer/swap/swap_make.h"

namespace gpurota::interposer {
namespace {

constexpr uint64_t kSwapPitchBytes = 512;

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
  if (device == nullptr || cost == UINT64_MAX) return refuse(place.slot, size, Answer::kNo);
  uint64_t address = 0;
  if (!device->space.allocate_shared(size, &address)) {
    const auto make = [&](const SwapRoom& room, bool* kept) {
      const RelaxedCapture relaxed;
      uint64_t took = 0;
      const CUresult made = device->space.allocate(size, &address, &took, room.hosted);
      *kept = took != 0;
      return made;
    };
    const auto refused = [&](Answer why) { return refuse(place.slot, size, why); };
    const CUresult result = swap_make(place.slot, cost, true, make, refused);
    if (result != CUDA_SUCCESS) return result;
  }
  *out = address;
  note(s, place, address, size, place.context, pool);
  return CUDA_SUCCESS;
}

bool same_room(uint64_t a, uint64_t b) {
  if (a < kSmall || b < kSmall)
    return (a + kGranule - 1) / kGranule == (b + kGranule - 1) / kGranule;
  return SwapSpace::cost(a) == SwapSpace::cost(b);
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

// The context of the stream, or the current one for a default stream. The thread that frees need
// not have the stream's context current, or any context.
CUcontext context_of_stream(State& s, CUstream stream) {
  CUcontext context = nullptr;
  const Outside named = Outside::unless_default(stream);
  if (GPUROTA_OWN(cuStreamGetCtx)(named, stream, &context) == CUDA_SUCCESS) return context;
  context = current_context();
  if (context != nullptr) return context;
  Lock lock(s.streams.mutex);
  const KnownStream* known = s.streams.streams.find(reinterpret_cast<uint64_t>(stream));
  return known != nullptr ? known->context : nullptr;
}

// Makes an event behind the work that the stream has now. The stream's context must be current.
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
  const uint64_t row = (width + kSwapPitchBytes - 1) & ~(kSwapPitchBytes - 1);
  uint64_t bytes = 0;
  if (row < width || __builtin_mul_overflow(row, height, &bytes)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = allocate(place, bytes, 0, out);
  if (result == CUDA_SUCCESS) *pitch = row;
  return result;
}

namespace {

// Freed memory of the same size class becomes the new allocation at `out`.
void use_again(State& s, const Place& place, uint64_t size, uint16_t pool, const FreedLater& again,
               CUdeviceptr* out) {
  destroy_event(again.event);
  note_ending(s, again.pool, -static_cast<int64_t>(again.size));
  note_ended(s, again.pool, again.size);
  *out = again.address;
  note(s, place, again.address, size, again.serial, pool);
}

// Takes memory that another stream has freed and no longer uses.
bool take_done(State& s, const Place& place, uint64_t size, FreedLater* out) {
  const RelaxedCapture relaxed;
  const auto is_done = [&](const FreedLater& later) {
    if (later.event == nullptr || later.slot != place.slot || !same_room(later.size, size)) {
      return false;
    }
    const InContext in(later.context);
    return GPUROTA_OWN(cuEventQuery)(relaxed, Outside::ours(), later.event) == CUDA_SUCCESS;
  };
  return take_freed(swap_of(s), is_done, out);
}

// Uses memory that another stream has freed: makes this stream wait for the work that came before
// the free. The driver's pools do the same when they may not grow.
bool use_behind_another(State& s, const Place& place, uint64_t size, CUstream stream,
                        bool per_thread, uint16_t pool, CUdeviceptr* out) {
  const GatePass pass(GateClass::kSubmits, stream, per_thread);
  const Outside outside = Outside::unless_captured(stream, per_thread);
  FreedLater again{};
  const auto fits = [&](const FreedLater& later) {
    return later.event != nullptr && later.slot == place.slot && same_room(later.size, size);
  };
  if (pass.refused() || !outside || !take_freed(swap_of(s), fits, &again)) return false;
  const CUresult result = per_thread
                              ? GPUROTA_OWN(cuStreamWaitEvent_ptsz)(outside, stream, again.event, 0)
                              : GPUROTA_OWN(cuStreamWaitEvent)(outside, stream, again.event, 0);
  if (result == CUDA_SUCCESS) {
    use_again(s, place, size, pool, again, out);
    return true;
  }
  if (!keep_freed(swap_of(s), again)) destroy_event(again.event);
  return false;
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
  if (take_freed(swap_of(s), fits, &again) || take_done(s, place, size, &again)) {
    use_again(s, place, size, pool, again, out);
    return CUDA_SUCCESS;
  }
  for (int round = 1;; ++round) {
    const uint64_t before = swap_of(s).given_back.load();
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
  // While memory moves, nothing uses it, so the free need not wait. A block that is being moved is
  // freed by the mover.
  const uint64_t before = swap_of(s).freed_last.load();
  note_ending(s, known.pool, static_cast<int64_t>(known.size));
  const FreedLater later{address,       known.size, 0,          nullptr,   nullptr,
                         known.context, 0,          known.pool, known.slot};
  if (swap_of(s).drained.load(std::memory_order_acquire) != 0 || wait_for_work(s)) {
    swap_end_freed(s, before);
    swap_end_memory(s, later);
  } else if (!keep_freed(swap_of(s), later)) {
    *result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  s.mirror(known.slot);
  return true;
}

bool swap_free_async(State& s, uint64_t address, CUstream stream, bool per_thread,
                     CUresult* result) {
  Allocation known{};
  if (!forget_swapped(s, address, &known)) return false;
  // A graph can free only memory that was allocated in it (abi/captures.tsv).
  CUevent event = nullptr;
  CUcontext context = context_of_stream(s, stream);
  const InContext in(context);
  *result = is_capturing(stream, per_thread) ? CUDA_ERROR_INVALID_VALUE
                                             : make_event(stream, per_thread, &event);
  if (*result == CUDA_SUCCESS) {
    swap_unshare(s, address);  // before another allocation can have it
    note_ending(s, known.pool, static_cast<int64_t>(known.size));
    if (keep_freed(swap_of(s), {address, known.size, key_of_stream(stream, per_thread), event,
                                context, known.context, 0, known.pool, known.slot})) {
      return true;
    }
    note_ending(s, known.pool, -static_cast<int64_t>(known.size));
    destroy_event(event);
    *result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  remember(s, address, known);
  return true;
}

void swap_free_context(State& s, uint32_t serial) {
  if (serial == 0) return;
  for (PointerShard& shard : memory_of(s).pointers) {
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
      swap_end_memory(s, found, allocation.slot);
      note_ended(s, allocation.pool, allocation.size);
    }
  }
  FreedLater later{};
  while (take_freed(
      swap_of(s), [=](const FreedLater& candidate) { return candidate.serial == serial; },
      &later)) {
    swap_end_memory(s, later);
  }
}

}  // namespace gpurota::interposer
