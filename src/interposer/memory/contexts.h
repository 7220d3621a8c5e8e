// The cost of contexts, around the calls that make and end them. Any thread.
#pragma once

#include "interposer/account/device.h"
#include "interposer/account/swap_table.h"
#include "interposer/driver/driver.h"
#include "interposer/gate/gate_part.h"

namespace gpurota::interposer {

// The slot to create a context on, reserved for; -1: refused.
int reserve_context(CUdevice device);

// note_context: a context has been made; to be called within beside_worker. settle_context, after
// that: `result` is the driver's answer for a context that was reserved for.
void note_context(CUcontext context, CUdevice device, int slot, bool primary);
CUresult settle_context(CUresult result, int slot);

bool primary_is_active(CUdevice device);

// `call` ends a context, or what is used as one. The worker of a swap tenant, which copies in
// contexts of the program's, is in none of them until it returns: what is known of the context must
// go within it.
template <typename Call>
CUresult away_from_worker(Call call) {
  if (!swapping()) return call();
  Lock lock(gate_of(state()).contexts_mutex);
  g_swap.forget_events(state());
  return call();
}

// `call` notes a context, or makes it too. None ends meanwhile: it may get the handle of one of
// which not all has been forgotten yet.
template <typename Call>
CUresult beside_worker(Call call) {
  if (!swapping()) return call();
  Lock lock(gate_of(state()).contexts_mutex);
  return call();
}

// The state of a primary context after it was released or reset.
struct PrimaryLeft {
  ContextInfo info;
  bool gone;     // that was the last who had it
  bool emptied;  // by a reset; somebody still has it
};

// Asks the driver, and forgets what is gone; within away_from_worker.
PrimaryLeft primary_was_left(CUdevice device, bool is_reset);
// Frees what lived in it; afterwards.
void settle_primary(const PrimaryLeft& left);

// Of the threads that come while there is no primary context, one makes it. True: this thread must.
// False: the context is there and noted, or this thread is in the middle of making it (a tool's
// callback). A thread that comes while another makes the context waits: else it would have the
// context before it was reserved for, or use memory that is not back yet.
bool begin_primary(int slot, CUdevice device);
void end_primary(int slot, bool made);
// Before a call that may end it, to end_primary() after what is known of it has gone: who makes the
// next one waits. The slot; -1: there is nothing to end, as the GPU is none of ours or this thread
// is in the middle of it.
int hold_primary(CUdevice device);

// `call` retains the primary context, and creates it if it is the first to; `context` tells it
// then.
template <typename Call, typename Context>
CUresult with_primary(CUdevice device, Call call, Context context) {
  const int slot = slot_of_device(device);
  if (slot < 0) {
    const bool may = primary_is_active(device) || reserve_context(device) >= 0;
    return may ? call() : CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (!begin_primary(slot, device)) return call();
  if (reserve_context(device) < 0) {
    end_primary(slot, false);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const CUresult result = beside_worker([&] {
    const CUresult said = call();
    if (said == CUDA_SUCCESS) note_context(context(), device, slot, true);
    return said;
  });
  settle_context(result, slot);
  end_primary(slot, result == CUDA_SUCCESS);
  return result;
}

}  // namespace gpurota::interposer
