// Memory that was freed in stream order, or while something captured, and ends later. Any thread.
#pragma once

#include "interposer/swap/tenant.h"

#include <cstdint>

namespace gpurota::interposer {

// Takes the first that `wanted` says yes to out of what was freed in stream order. `wanted` may ask
// the driver about an event: no callback of the driver's comes here, so holding the lock meanwhile
// harms no thread.
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

// False: no memory to keep it in.
bool keep_freed(Swap& swap, const FreedLater& later);
void destroy_event(CUevent event);

// The memory at an address ends, and what was freed later.
void swap_end_memory(State& s, uint64_t address, int slot);
void swap_end_memory(State& s, const FreedLater& later);

// A stream ends: another may get its key.
void swap_stream_gone(State& s, uint64_t key);

// Ends what was freed in stream order, or during a capture, up to number `done`: all work that was
// there then is over, in every stream. The work of the stream that it was freed in is not enough: a
// program may free memory that another stream still uses, and gets away with it, as the driver's
// pools keep such memory mapped. Returns whether there was any.
bool swap_end_freed(State& s, uint64_t done);
// The same, if nothing is in flight.
bool swap_end_freed_if_idle(State& s);
// The same, once what is in flight now is over; if that takes no longer than a second. To be called
// before memory is refused.
bool swap_end_freed_soon(State& s);

// A context is about to go, and events in it: what was freed in stream order is not asked about any
// more, and ends once nothing is in flight.
void swap_forget_events(State& s);

// Of what was freed in stream order some ends by itself: waits for that, shortly, as its stream may
// wait for us. Whether anything was given back since `before` was read.
bool wait_for_freed(State& s, uint64_t before);

}  // namespace gpurota::interposer
