// Contexts: each costs hundreds of megabytes, and no argument tells how many. Before a context is
// created, the daemon reserves the cost of earlier contexts on that GPU. Afterwards the daemon is
// told how many contexts live.
#include "interposer/memory/contexts.h"

#include "interposer/account/device.h"
#include "interposer/account/link.h"
#include "interposer/driver/driver.h"
#include "interposer/driver/own_calls.h"
#include "interposer/memory/linear.h"
#include "interposer/memory/pool_charge.h"
#include "interposer/memory/reserve.h"
#include "interposer/os/debug.h"

namespace gpurota::interposer {
namespace {

// A value of primary_maker. A larger one is 1 + the id of the thread that is making the primary
// context, or is in a call that may end that context.
constexpr uint32_t kPrimaryIsThere = 1;

uint32_t own_mark() { return static_cast<uint32_t>(sys_gettid()) + 1; }

// Waits until no other thread is making the primary context or is in a call that may end it;
// returns the value of `maker`.
uint32_t outwait(std::atomic<uint32_t>* maker, uint32_t self) {
  for (;;) {
    const uint32_t now = maker->load();
    if (now == self || now <= kPrimaryIsThere) return now;
    futex_wait(maker, now, nullptr);
  }
}

}  // namespace

int reserve_context(CUdevice device) {
  const int slot = slot_of_device(device);
  if (slot < 0) {
    GPUROTA_DEBUG(
        "a context on device %d is refused: %s", device,
        attached() ? "the GPU is not of this lease" : "no daemon has taken this program up");
    refuse_elsewhere();
    return -1;
  }
  const Answer answer = grow(slot, GPUROTA_GROW_CONTEXT, 0);
  if (answer == Answer::kYes) return slot;
  refuse(slot, 0, answer);
  return -1;
}

void note_context(CUcontext context, CUdevice device, int slot, bool primary) {
  state().slots[slot].contexts.fetch_add(1);
  add_context(context, device, slot, primary, true);
  if (swapping()) g_swap.unpark(state());
}

CUresult settle_context(CUresult result, int slot) {
  if (result != CUDA_SUCCESS && swapping()) {
    g_swap.context_returned(slot, state().slots[slot].contexts.load());
  }
  report_contexts(slot);
  return result;
}

namespace {

template <typename Call>
CUresult create(CUcontext* out, CUdevice device, Call call) {
  const int slot = reserve_context(device);
  if (slot < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  // The driver takes long to create a context, so `call` runs outside beside_worker(), which keeps
  // the worker waiting. Meanwhile the new context may have the handle of a context that has just
  // ended, but nothing lives in the new context before it is noted.
  CUresult result = call();
  if (result == CUDA_SUCCESS) {
    result = beside_worker([&] {
      note_context(*out, device, slot, false);
      return CUDA_SUCCESS;
    });
  }
  return settle_context(result, slot);
}

void free_all_in(const ContextInfo& info) {
  g_swap.free_context(state(), info.serial);
  credit_context(state(), info.serial);
}

void context_is_gone(const ContextInfo& info) {
  free_all_in(info);
  if (info.slot < 0) return;
  settle_pools(info.slot);
  if (!info.charged) return;
  const uint32_t left = state().slots[info.slot].contexts.fetch_sub(1) - 1;
  if (swapping()) g_swap.context_returned(info.slot, left);
  report_contexts(info.slot);
}

// Must be one step with the driver's call: otherwise the worker could use a context that is gone.
bool forget_context(CUcontext context, ContextInfo* info) {
  forget_work(context);
  return remove_context(context, info);
}

// `call` ends the context if it succeeds.
template <typename Call>
CUresult destroy(CUcontext context, Call call) {
  ContextInfo info;
  int entry = -1;
  const CUresult result = away_from_worker([&] {
    entry = set_context_aside(context, &info);
    const CUresult said = call();
    if (entry < 0) return said;
    if (said == CUDA_SUCCESS) forget_work(context);
    settle_aside(entry, context, said == CUDA_SUCCESS);
    return said;
  });
  if (entry >= 0 && result == CUDA_SUCCESS) context_is_gone(info);
  return result;
}

// Removes a reference; the last one ends the context.
template <typename Call>
CUresult detach(CUcontext context, Call call) {
  const bool last = refer(context, -1) == 0;
  const CUresult result = last ? destroy(context, call) : call();
  if (result != CUDA_SUCCESS) refer(context, 1);
  return result;
}

template <typename Call>
CUresult leave_primary(CUdevice device, bool is_reset, Call call) {
  PrimaryLeft left{};
  const int held = hold_primary(device);
  const CUresult result = away_from_worker([&] {
    const CUresult said = call();
    if (said == CUDA_SUCCESS) left = primary_was_left(device, is_reset);
    return said;
  });
  if (held >= 0) end_primary(held, !left.gone);
  settle_primary(left);
  return result;
}

}  // namespace

void forget_work(CUcontext context) {
  forget_context_work(state(), context);
  if (swapping()) g_swap.forget_context(context);
}

bool primary_is_active(CUdevice device) {
  unsigned int flags = 0;
  int is_active = 0;
  return GPUROTA_OWN(cuDevicePrimaryCtxGetState)(device, &flags, &is_active) == CUDA_SUCCESS &&
         is_active != 0;
}

bool begin_primary(int slot, CUdevice device) {
  std::atomic<uint32_t>& maker = state().slots[slot].primary_maker;
  ErrnoGuard guard;
  const uint32_t self = own_mark();
  for (;;) {
    uint32_t now = outwait(&maker, self);
    if (now == self || primary_is_active(device)) return false;
    if (!maker.compare_exchange_strong(now, self)) continue;
    if (!primary_is_active(device)) return true;
    end_primary(slot, true);  // another thread has made it since the check
    return false;
  }
}

int hold_primary(CUdevice device) {
  const int slot = attached() ? slot_of_device(device) : -1;
  if (slot < 0) return -1;
  std::atomic<uint32_t>& maker = state().slots[slot].primary_maker;
  ErrnoGuard guard;
  const uint32_t self = own_mark();
  for (;;) {
    uint32_t now = outwait(&maker, self);
    if (now == self) return -1;
    if (maker.compare_exchange_strong(now, self)) return slot;
  }
}

void end_primary(int slot, bool made) {
  std::atomic<uint32_t>& maker = state().slots[slot].primary_maker;
  maker.store(made ? kPrimaryIsThere : 0);
  ErrnoGuard guard;
  futex_wake(&maker, INT32_MAX);
}

PrimaryLeft primary_was_left(CUdevice device, bool is_reset) {
  PrimaryLeft left{};
  if (!find_primary(device, &left.info)) return left;
  if (!primary_is_active(device)) {
    left.gone = forget_context(left.info.context, &left.info);
  } else if (is_reset) {
    left.emptied = true;
    forget_work(left.info.context);
  }
  return left;
}

void settle_primary(const PrimaryLeft& left) {
  const int slot = left.info.slot;
  if (left.gone) context_is_gone(left.info);
  if (!left.emptied) return;
  free_all_in(left.info);
  if (slot >= 0) settle_pools(slot);
}

}  // namespace gpurota::interposer

using gpurota::interposer::create;
using gpurota::interposer::destroy;
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
  return gpurota::interposer::detach(context, [=] { return real(context); });
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
