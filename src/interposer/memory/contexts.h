// Charges contexts, around the calls that make and end them. Any thread.
#pragma once

#include "interposer/account/device.h"
#include "interposer/account/swap_table.h"
#include "interposer/driver/driver.h"
#include "interposer/gate/gate_part.h"

namespace gpurota::interposer {

// Reserves the cost of a new context and returns its slot; -1: refused.
int reserve_context(CUdevice device);

// note_context() records a context that was made; call it within beside_worker(). settle_context()
// comes after that: `result` is the driver's answer for a context whose cost was reserved.
void note_context(CUcontext context, CUdevice device, int slot, bool primary);
CUresult settle_context(CUresult result, int slot);

bool primary_is_active(CUdevice device);

// Forgets the records of work in a context that has ended or was emptied. Call within
// away_from_worker().
void forget_work(CUcontext context);

// Runs `call`, which ends a context or a green context. The worker of a swap tenant copies in
// contexts of the program's; until `call` returns, the worker uses none of them. All records of the
// context must be removed within `call`.
template <typename Call>
CUresult away_from_worker(Call call) {
  if (!swapping()) return call();
  Lock lock(gate_of(state()).contexts_mutex);
  g_swap.forget_events(state());
  return call();
}

// Runs `call`, which records a context, and may also make it. No context may end meanwhile, because
// the new one could get the handle of a context whose records are not all removed yet.
template <typename Call>
CUresult beside_worker(Call call) {
  if (!swapping()) return call();
  Lock lock(gate_of(state()).contexts_mutex);
  return call();
}

// The state of a primary context after it was released or reset.
struct PrimaryLeft {
  ContextInfo info;
  bool gone;     // the last reference was released
  bool emptied;  // by a reset, while references remain
};

// Asks the driver, and removes the records of a context that is gone. Call within
// away_from_worker().
PrimaryLeft primary_was_left(CUdevice device, bool is_reset);
// Frees what lived in the primary context. Call after primary_was_left().
void settle_primary(const PrimaryLeft& left);

// Of the threads that want the primary context while there is none, one makes it. True: this thread
// must make it. False: the context is there and noted, or this thread is in the middle of making it
// (a tool's callback). A thread that calls this while another makes the context waits. Otherwise
// the thread would use the context before its cost is reserved, or use memory that is still
// evicted.
bool begin_primary(int slot, CUdevice device);
void end_primary(int slot, bool made);
// Call before a call that may end the primary context. A thread that wants to make the next primary
// context waits until end_primary(), which must come after the records of the old context are
// removed. Returns the slot, or -1 if end_primary() must not be called: the lease does not have the
// GPU, or this thread is in the middle of making or ending the context.
int hold_primary(CUdevice device);

// `call` retains the primary context, and creates it if there is none; `context` then returns it.
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
