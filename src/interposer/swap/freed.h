// Memory that was freed in stream order or during a capture, and that ends later. Any thread.
#pragma once

#include "interposer/swap/tenant.h"

#include <cstdint>

namespace gpurota::interposer {

// Removes, from the memory that was freed in stream order, the first entry for which `wanted`
// returns true. `wanted` may query an event with the lock held: no driver callback calls this
// function, so there is no deadlock.
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

// Keeps memory to be ended later. False: no memory for the entry.
bool keep_freed(Swap& swap, const FreedLater& later);
void destroy_event(CUevent event);

// Ends memory: gives it back, and tells the daemon.
void swap_end_memory(State& s, uint64_t address, int slot);
void swap_end_memory(State& s, const FreedLater& later);

// A stream ends. Another stream may get its key.
void swap_stream_gone(State& s, uint64_t key);

// Ends memory that was freed in stream order, or during a capture, up to number `done`. All work
// that was submitted before `done` was read must be over, in every stream. Work of the freeing
// stream alone is not enough: a program may free memory that another stream still uses, and gets
// away with it, as the driver's pools keep such memory mapped. Returns whether there was any.
bool swap_end_freed(State& s, uint64_t done);
// Ends all memory that has been freed so far, if nothing is in flight.
bool swap_end_freed_if_idle(State& s);
// The same, once all work that is in flight now is over, if that takes no longer than a second. To
// be called before memory is refused.
bool swap_end_freed_soon(State& s);

// A context is about to be destroyed, with its events. Memory that was freed in stream order then
// ends once nothing is in flight, as its events can no longer be queried.
void swap_forget_events(State& s);

// Waits until memory that was freed in stream order ends by itself. Waits for a second at most,
// because the memory's stream may wait for this thread. Returns whether anything was given back
// since `before` was read.
bool wait_for_freed(State& s, uint64_t before);

}  // namespace gpurota::interposer
