// Contexts: each costs hundreds of megabytes that no argument tells, so the daemon reserves for it
// before it is created, from what earlier ones on that GPU cost, and hears how many live.
#include "interposer/contexts.h"

#include "interposer/debug.h"
#include "interposer/device.h"
#include "interposer/driver.h"
#include "interposer/ledger.h"
#include "interposer/linear.h"
#include "interposer/link.h"
#include "interposer/pools.h"
#include "interposer/swap/grants.h"
#include "interposer/swap/memory.h"
#include "interposer/swap/worker.h"

namespace gpurota::interposer {
int reserve_context(CUdevice device) {
  const int slot = slot_of_device(device);
  if (slot < 0) {
    GPUROTA_DEBUG(
        "a context on device %d is refused: %s", device,
        attached() ? "the GPU is not of this lease" : "no daemon has taken this program up");
    return -1;
  }
  if (grow(slot, GPUROTA_GROW_CONTEXT, 0) == Answer::kYes) return slot;
  refuse(slot, 0);
  return -1;
}

CUresult settle_context(CUresult result, CUcontext context, CUdevice device, int slot,
                        bool primary) {
  if (result == CUDA_SUCCESS) {
    state().slots[slot].contexts.fetch_add(1);
    add_context(context, device, slot, primary, true);
  } else if (swapping()) {
    swap_context_returned(slot, state().slots[slot].contexts.load());
  }
  report_contexts(slot);
  return result;
}

namespace {

template <typename Call>
CUresult create(CUcontext* out, CUdevice device, Call call) {
  const int slot = reserve_context(device);
  if (slot < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = call();
  return settle_context(result, result == CUDA_SUCCESS ? *out : nullptr, device, slot, false);
}

void free_all_in(const ContextInfo& info) {
  if (swapping()) swap_free_context(state(), info.serial);
  credit_context(state(), info.serial);
}

void context_is_gone(const ContextInfo& info) {
  free_all_in(info);
  if (info.slot < 0) return;
  settle_pools(info.slot);
  if (!info.charged) return;
  const uint32_t left = state().slots[info.slot].contexts.fetch_sub(1) - 1;
  if (swapping()) swap_context_returned(info.slot, left);
  report_contexts(info.slot);
}

CUresult destroyed(CUresult result, CUcontext context) {
  ContextInfo info;
  if (result == CUDA_SUCCESS && remove_context(context, &info)) context_is_gone(info);
  return result;
}

// Nothing of ours is in the context while it goes, and nothing stays behind.
template <typename Call>
CUresult destroy(CUcontext context, Call call) {
  if (!swapping()) return destroyed(call(), context);
  CUresult result = CUDA_SUCCESS;
  {
    Lock lock(state().swap.contexts_mutex);
    result = call();
    if (result == CUDA_SUCCESS) swap_forget_context(context);
  }
  return destroyed(result, context);
}

// The primary context goes with its last reference, or is emptied by a reset.
template <typename Call>
CUresult leave_primary(CUdevice device, bool is_reset, Call call) {
  ContextInfo info;
  if (!swapping() || !find_primary(device, &info)) return primary_left(call(), device, is_reset);
  CUresult result = CUDA_SUCCESS;
  {
    Lock lock(state().swap.contexts_mutex);
    result = call();
    if (result == CUDA_SUCCESS && (is_reset || !primary_is_active(device))) {
      swap_forget_context(info.context);
    }
  }
  return primary_left(result, device, is_reset);
}

}  // namespace

bool primary_is_active(CUdevice device) {
  const auto get_state = GPUROTA_REAL(cuDevicePrimaryCtxGetState);
  unsigned int flags = 0;
  int is_active = 0;
  return get_state != nullptr && get_state(device, &flags, &is_active) == CUDA_SUCCESS &&
         is_active != 0;
}

CUresult primary_left(CUresult result, CUdevice device, bool was_reset) {
  ContextInfo info;
  if (result != CUDA_SUCCESS || !find_primary(device, &info)) return result;
  if (primary_is_active(device)) {
    if (was_reset) free_all_in(info);
    if (was_reset && info.slot >= 0) settle_pools(info.slot);
    return result;
  }
  if (!remove_context(info.context, &info)) return result;
  if (info.slot >= 0) state().slots[info.slot].primary_taken.store(0);
  context_is_gone(info);
  return result;
}

}  // namespace gpurota::interposer

using gpurota::interposer::create;
using gpurota::interposer::destroy;
using gpurota::interposer::destroyed;
using gpurota::interposer::leave_primary;
using gpurota::interposer::with_primary;

CUresult cuCtxCreate(CUcontext* out, unsigned int flags, CUdevice device) {
  GPUROTA_ENTER(cuCtxCreate, out, flags, device);
  return create(out, device, [=] { return real(out, flags, device); });
}

CUresult cuCtxCreate_v2(CUcontext* out, unsigned int flags, CUdevice device) {
  GPUROTA_ENTER(cuCtxCreate_v2, out, flags, device);
  return create(out, device, [=] { return real(out, flags, device); });
}

CUresult cuCtxCreate_v3(CUcontext* out, CUexecAffinityParam* params, int count, unsigned int flags,
                        CUdevice device) {
  GPUROTA_ENTER(cuCtxCreate_v3, out, params, count, flags, device);
  return create(out, device, [=] { return real(out, params, count, flags, device); });
}

CUresult cuCtxCreate_v4(CUcontext* out, CUctxCreateParams* params, unsigned int flags,
                        CUdevice device) {
  GPUROTA_ENTER(cuCtxCreate_v4, out, params, flags, device);
  return create(out, device, [=] { return real(out, params, flags, device); });
}

CUresult cuCtxDestroy(CUcontext context) {
  GPUROTA_ENTER(cuCtxDestroy, context);
  return destroy(context, [=] { return real(context); });
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  GPUROTA_ENTER(cuCtxDestroy_v2, context);
  return destroy(context, [=] { return real(context); });
}

CUresult cuCtxAttach(CUcontext* out, unsigned int flags) {
  GPUROTA_ENTER(cuCtxAttach, out, flags);
  const CUresult result = real(out, flags);
  if (result == CUDA_SUCCESS && out != nullptr) gpurota::interposer::refer(*out, 1);
  return result;
}

CUresult cuCtxDetach(CUcontext context) {
  GPUROTA_ENTER(cuCtxDetach, context);
  const CUresult result = real(context);
  if (result != CUDA_SUCCESS || gpurota::interposer::refer(context, -1) != 0) return result;
  if (gpurota::interposer::swapping()) gpurota::interposer::swap_forget_context(context);
  return destroyed(result, context);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice device) {
  GPUROTA_ENTER(cuDevicePrimaryCtxRetain, out, device);
  return with_primary(
      device, [=] { return real(out, device); }, [=] { return *out; });
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  GPUROTA_ENTER(cuDevicePrimaryCtxRelease, device);
  return leave_primary(device, false, [=] { return real(device); });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  GPUROTA_ENTER(cuDevicePrimaryCtxRelease_v2, device);
  return leave_primary(device, false, [=] { return real(device); });
}

CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  GPUROTA_ENTER(cuDevicePrimaryCtxReset, device);
  return leave_primary(device, true, [=] { return real(device); });
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  GPUROTA_ENTER(cuDevicePrimaryCtxReset_v2, device);
  return leave_primary(device, true, [=] { return real(device); });
}
