// The primary context of each device, which all users of the runtime API in the process share.
#include "sim/cuda/api.h"

using gpurota::sim::Call;
using gpurota::sim::Context;
using gpurota::sim::Primary;

namespace {

class PrimaryCall : public Call {
 public:
  explicit PrimaryCall(CUdevice ordinal) {
    if (failed()) return;
    if (driver_.machine_device(ordinal) < 0) {
      error_ = CUDA_ERROR_INVALID_DEVICE;
    } else {
      primary_ = &driver_.primary[static_cast<std::size_t>(ordinal)];
    }
  }
  Primary& primary() const { return *primary_; }
  void destroy() {
    Context* context = primary_->context;
    primary_->context = nullptr;
    if (context != nullptr) driver_.destroy_context(context, lock_);
  }

 private:
  Primary* primary_ = nullptr;
};

}  // namespace

GPUROTA_SIM_API cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice ordinal) {
  const PrimaryCall call(ordinal);
  if (call.failed()) return call.error();
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Primary& primary = call.primary();
  if (primary.context == nullptr) {
    Context* context = nullptr;
    const CUresult result = call.driver().create_context(ordinal, primary.flags, 3020, &context);
    if (result != CUDA_SUCCESS) return result;
    context->is_primary = true;
    primary.context = context;
  }
  ++primary.references;
  *out = reinterpret_cast<CUcontext>(primary.context);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuDevicePrimaryCtxRelease_v2(CUdevice ordinal) {
  PrimaryCall call(ordinal);
  if (call.failed()) return call.error();
  if (call.primary().references == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--call.primary().references == 0) call.destroy();
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuDevicePrimaryCtxRelease(CUdevice ordinal) {
  return cuDevicePrimaryCtxRelease_v2(ordinal);
}

// Frees everything in the primary context. References from cuDevicePrimaryCtxRetain stay and refer
// to the context made next.
GPUROTA_SIM_API cuDevicePrimaryCtxReset_v2(CUdevice ordinal) {
  PrimaryCall call(ordinal);
  if (call.failed()) return call.error();
  call.destroy();
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuDevicePrimaryCtxReset(CUdevice ordinal) {
  return cuDevicePrimaryCtxReset_v2(ordinal);
}

GPUROTA_SIM_API cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned flags) {
  const PrimaryCall call(ordinal);
  if (call.failed()) return call.error();
  if ((flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) != 0) return CUDA_ERROR_INVALID_VALUE;
  call.primary().flags = flags;
  if (call.primary().context != nullptr) call.primary().context->flags = flags;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuDevicePrimaryCtxSetFlags(CUdevice ordinal, unsigned flags) {
  const PrimaryCall call(ordinal);
  if (call.failed()) return call.error();
  if (call.primary().context != nullptr) return CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE;
  call.primary().flags = flags;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned* flags, int* active) {
  const PrimaryCall call(ordinal);
  if (call.failed()) return call.error();
  if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = call.primary().flags;
  *active = call.primary().context != nullptr ? 1 : 0;
  return CUDA_SUCCESS;
}
