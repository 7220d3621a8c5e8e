// What contexts cost, around the calls that make and end them. Any thread.
#pragma once

#include "interposer/device.h"
#include "interposer/driver.h"
#include "interposer/swap/grants.h"
#include "interposer/swap/memory.h"

namespace gpurota::interposer {

// The slot to create a context on, reserved for; -1: refused.
int reserve_context(CUdevice device);

// It is there, within beside_worker; and, afterwards, what the driver said of one that was reserved for.
void note_context(CUcontext context, CUdevice device, int slot, bool primary);
CUresult settle_context(CUresult result, int slot);

bool primary_is_active(CUdevice device);

// `call` ends a context, or what is used as one. The worker of a swap tenant, which copies in contexts of the
// program's, is in none of them until it returns: what is known of the context must go within it.
template <typename Call>
CUresult away_from_worker(Call call) {
  if (!swapping()) return call();
  Lock lock(state().swap.contexts_mutex);
  swap_forget_events(state());
  return call();
}

// `call` makes a context, and notes it. None ends meanwhile: it may get the handle of one of which not all has
// been forgotten yet.
template <typename Call>
CUresult beside_worker(Call call) {
  if (!swapping()) return call();
  Lock lock(state().swap.contexts_mutex);
  return call();
}

// What has become of the primary context that was released or reset.
struct PrimaryLeft {
  ContextInfo info;
  bool gone;     // that was the last who had it
  bool emptied;  // by a reset; somebody still has it
};

// Asks the driver, and forgets what is gone; within away_from_worker.
PrimaryLeft primary_was_left(CUdevice device, bool is_reset);
// Frees what lived in it; afterwards.
void settle_primary(const PrimaryLeft& left);

// `call` retains the primary context, and creates it if it is the first to; `context` tells it then. Two
// threads may come at once: one of them reserves, and the driver makes one context.
template <typename Call, typename Context>
CUresult with_primary(CUdevice device, Call call, Context context) {
  if (primary_is_active(device)) return call();
  const int slot = slot_of_device(device);
  if (slot < 0) return reserve_context(device) < 0 ? CUDA_ERROR_OUT_OF_MEMORY : call();
  std::atomic<uint32_t>& taken = state().slots[slot].primary_taken;
  if (taken.exchange(1) != 0) return call();
  if (reserve_context(device) < 0) {
    taken.store(0);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const CUresult result = beside_worker([&] {
    const CUresult said = call();
    if (said == CUDA_SUCCESS) note_context(context(), device, slot, true);
    return said;
  });
  if (result != CUDA_SUCCESS) taken.store(0);
  return settle_context(result, slot);
}

}  // namespace gpurota::interposer
