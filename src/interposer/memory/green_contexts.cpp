// Green contexts. A green context is a part of a GPU's processors and a view of the device's
// primary context, and retains the primary context. Memory that is allocated in a green context
// lives in the primary context.
#include "interposer/account/device.h"
#include "interposer/driver/driver.h"
#include "interposer/driver/own_calls.h"
#include "interposer/memory/contexts.h"

namespace gpurota::interposer {
namespace {

CUcontext primary_of(CUdevice device) {
  CUcontext context = nullptr;
  if (GPUROTA_OWN(cuDevicePrimaryCtxRetain)(&context, device) != CUDA_SUCCESS) return nullptr;
  GPUROTA_OWN(cuDevicePrimaryCtxRelease_v2)(device);
  return context;
}

void note_view(CUgreenCtx green, CUdevice device) {
  CUcontext view = nullptr;
  if (GPUROTA_OWN(cuCtxFromGreenCtx)(&view, green) != CUDA_SUCCESS) return;
  ContextInfo primary{};
  find_primary(device, &primary);
  add_view(view, green, device, slot_of_device(device), primary.serial);
}

PrimaryLeft view_is_gone(CUgreenCtx green) {
  ContextInfo view{};
  if (!remove_view(green, &view)) return {};
  forget_work(view.context);
  return primary_was_left(view.device, false);
}

}  // namespace
}  // namespace gpurota::interposer

namespace interposer = gpurota::interposer;

CUresult cuGreenCtxCreate(CUgreenCtx* out, CUdevResourceDesc resources, CUdevice device,
                          unsigned int flags) {
  GPUROTA_ENTER(cuGreenCtxCreate, out, resources, device, flags);
  const CUresult result = interposer::with_primary(
      device, [=] { return real(out, resources, device, flags); },
      [=] { return interposer::primary_of(device); });
  if (result == CUDA_SUCCESS) interposer::note_view(*out, device);
  return result;
}

CUresult cuGreenCtxDestroy(CUgreenCtx green) {
  GPUROTA_ENTER(cuGreenCtxDestroy, green);
  interposer::PrimaryLeft left{};
  interposer::ContextInfo view{};
  const int held = interposer::find_view(green, &view) ? interposer::hold_primary(view.device) : -1;
  const CUresult result = interposer::away_from_worker([&] {
    const CUresult said = real(green);
    if (said == CUDA_SUCCESS) left = interposer::view_is_gone(green);
    return said;
  });
  if (held >= 0) interposer::end_primary(held, !left.gone);
  interposer::settle_primary(left);
  return result;
}
