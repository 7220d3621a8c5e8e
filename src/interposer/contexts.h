// What contexts cost, around the calls that make and end them. Any thread.
#pragma once

#include "interposer/device.h"
#include "interposer/driver.h"

namespace gpurota::interposer {

// The slot to create a context on, reserved for; -1: refused.
int reserve_context(CUdevice device);

// What the driver said of a context that was reserved for.
CUresult settle_context(CUresult result, CUcontext context, CUdevice device, int slot,
                        bool primary);

bool primary_is_active(CUdevice device);

// The primary context was released or reset; whether it is gone is the driver's to say. A reset frees
// what lived in it even if somebody still retains it.
CUresult primary_left(CUresult result, CUdevice device, bool was_reset);

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
  const CUresult result = call();
  if (result != CUDA_SUCCESS) taken.store(0);
  return settle_context(result, result == CUDA_SUCCESS ? context() : nullptr, device, slot, true);
}

}  // namespace gpurota::interposer
