// Contexts: creating, making current, querying and destroying them.
#include "sim/cuda/api.h"
#include "sim/cuda/capture.h"
#include "sim/cuda/pool.h"

#include <algorithm>

using gpurota::sim::Call;
using gpurota::sim::Context;
using gpurota::sim::context_stack;
using gpurota::sim::ContextCall;

namespace {

constexpr unsigned kFlags = CU_CTX_FLAGS_MASK;

CUresult create(CUcontext* out, unsigned flags, CUdevice device, unsigned version) {
  const Call call;
  if (call.failed()) return call.error();
  if (out == nullptr || (flags & ~kFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  const CUresult result = call.driver().create_context(device, flags, version, &context);
  if (result != CUDA_SUCCESS) return result;
  context_stack().push_back(context);
  *out = reinterpret_cast<CUcontext>(context);
  return CUDA_SUCCESS;
}

CUresult destroy(CUcontext handle) {
  Call call;
  if (call.failed()) return call.error();
  Context* context = call.driver().contexts.find(handle);
  if (context == nullptr) {
    return handle == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }
  if (context->is_primary || context->view_of != nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  call.driver().destroy_context(context, call.lock());
  std::vector<Context*>& stack = context_stack();
  if (!stack.empty() && stack.back() == context) stack.pop_back();
  return CUDA_SUCCESS;
}

// The context of a handle; the current context for a null handle.
class AnyContextCall : public Call {
 public:
  explicit AnyContextCall(CUcontext handle, const char* function = __builtin_FUNCTION())
      : Call(function) {
    if (failed()) return;
    if (handle == nullptr)
      handle =
          context_stack().empty() ? nullptr : reinterpret_cast<CUcontext>(context_stack().back());
    context_ = driver_.contexts.find(handle);
    if (context_ != nullptr && context_->view_of != nullptr) {
      context_ = driver_.contexts.find(context_->view_of);
    }
    if (handle == nullptr) {
      error_ = CUDA_ERROR_INVALID_CONTEXT;
    } else if (context_ == nullptr) {
      error_ = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
  }
  Context* context() const { return context_; }

 private:
  Context* context_ = nullptr;
};

CUresult synchronize(AnyContextCall& call) {
  if (call.failed()) return call.error();
  Context& context = *call.context();
  const CUresult capturing = gpurota::sim::check_captures_in(call.driver(), context);
  if (capturing != CUDA_SUCCESS) return capturing;
  if (call.machine().faults(context.device).lost.load() != 0) return CUDA_ERROR_UNKNOWN;
  const CUdevice ordinal = context.ordinal;
  call.driver().wait_all(call.driver().tails(context), call.lock());
  if (call.driver().contexts.find(&context) == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  gpurota::sim::trim_pools_of(call.driver(), ordinal);
  return context.error.load();
}

CUresult limit_of(const Context& context, CUlimit limit, std::size_t* value) {
  const auto set = context.limits.find(limit);
  if (set != context.limits.end()) {
    *value = set->second;
    return CUDA_SUCCESS;
  }
  switch (limit) {
    case CU_LIMIT_STACK_SIZE:
      *value = 1024;
      return CUDA_SUCCESS;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
      *value = std::size_t{1} << 20;
      return CUDA_SUCCESS;
    case CU_LIMIT_MALLOC_HEAP_SIZE:
      *value = std::size_t{8} << 20;
      return CUDA_SUCCESS;
    case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
      *value = 2048;
      return CUDA_SUCCESS;
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
      *value = 64;
      return CUDA_SUCCESS;
    case CU_LIMIT_PERSISTING_L2_CACHE_SIZE:
      *value = 0;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_UNSUPPORTED_LIMIT;
  }
}

}  // namespace

GPUROTA_SIM_API cuCtxCreate(CUcontext* out, unsigned flags, CUdevice device) {
  return create(out, flags, device, 3010);
}

GPUROTA_SIM_API cuCtxCreate_v2(CUcontext* out, unsigned flags, CUdevice device) {
  return create(out, flags, device, 3020);
}

GPUROTA_SIM_API cuCtxCreate_v3(CUcontext* out, CUexecAffinityParam*, int count, unsigned flags,
                               CUdevice device) {
  if (count > 0) return gpurota::sim::unsupported("cuCtxCreate_v3 with affinity");
  return create(out, flags, device, 3020);
}

GPUROTA_SIM_API cuCtxCreate_v4(CUcontext* out, CUctxCreateParams* parameters, unsigned flags,
                               CUdevice device) {
  if (parameters != nullptr &&
      (parameters->numExecAffinityParams > 0 || parameters->cigParams != nullptr)) {
    return gpurota::sim::unsupported("cuCtxCreate_v4 with affinity");
  }
  return create(out, flags, device, 3020);
}

GPUROTA_SIM_API cuCtxDestroy_v2(CUcontext context) { return destroy(context); }
GPUROTA_SIM_API cuCtxDestroy(CUcontext context) { return destroy(context); }

GPUROTA_SIM_API cuCtxAttach(CUcontext* out, unsigned flags) {
  const AnyContextCall call(nullptr);
  if (call.failed()) return call.error();
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  ++call.context()->references;
  *out = reinterpret_cast<CUcontext>(call.context());
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuCtxDetach(CUcontext handle) {
  {
    const AnyContextCall call(handle);
    if (call.failed()) return call.error();
    if (call.context()->references > 1) {
      --call.context()->references;
      return CUDA_SUCCESS;
    }
  }
  return destroy(handle);
}

GPUROTA_SIM_API cuCtxPushCurrent_v2(CUcontext handle) {
  const Call call;
  if (call.failed()) return call.error();
  Context* context = call.driver().contexts.find(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  context_stack().push_back(context);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuCtxPushCurrent(CUcontext handle) { return cuCtxPushCurrent_v2(handle); }

GPUROTA_SIM_API cuCtxPopCurrent_v2(CUcontext* out) {
  const Call call;
  if (call.failed()) return call.error();
  std::vector<Context*>& stack = context_stack();
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (out != nullptr) *out = reinterpret_cast<CUcontext>(stack.back());
  stack.pop_back();
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuCtxPopCurrent(CUcontext* out) { return cuCtxPopCurrent_v2(out); }

GPUROTA_SIM_API cuCtxSetCurrent(CUcontext handle) {
  const Call call;
  if (call.failed()) return call.error();
  std::vector<Context*>& stack = context_stack();
  if (handle == nullptr) {
    if (!stack.empty()) stack.pop_back();
    return CUDA_SUCCESS;
  }
  Context* context = call.driver().contexts.find(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (stack.empty()) {
    stack.push_back(context);
  } else {
    stack.back() = context;
  }
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuCtxGetCurrent(CUcontext* out) {
  const Call call;
  if (call.failed()) return call.error();
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::vector<Context*>& stack = context_stack();
  *out = stack.empty() ? nullptr : reinterpret_cast<CUcontext>(stack.back());
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuCtxGetDevice(CUdevice* device) {
  const AnyContextCall call(nullptr);
  if (call.failed()) return call.error();
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = call.context()->ordinal;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuCtxGetDevice_v2(CUdevice* device, CUcontext handle) {
  const AnyContextCall call(handle);
  if (call.failed()) return call.error();
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = call.context()->ordinal;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuCtxGetFlags(unsigned* flags) {
  const AnyContextCall call(nullptr);
  if (call.failed()) return call.error();
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = call.context()->flags;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuCtxSetFlags(unsigned flags) {
  const AnyContextCall call(nullptr);
  if (call.failed()) return call.error();
  if ((flags & ~kFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  call.context()->flags = flags;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuCtxGetId(CUcontext handle, unsigned long long* id) {
  const AnyContextCall call(handle);
  if (call.failed()) return call.error();
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = call.context()->id;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuCtxGetApiVersion(CUcontext handle, unsigned* version) {
  const AnyContextCall call(handle);
  if (call.failed()) return call.error();
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = call.context()->version;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuCtxSynchronize() {
  AnyContextCall call(nullptr);
  return synchronize(call);
}

GPUROTA_SIM_API cuCtxSynchronize_v2(CUcontext handle) {
  AnyContextCall call(handle);
  return synchronize(call);
}

GPUROTA_SIM_API cuCtxGetLimit(std::size_t* value, CUlimit limit) {
  const AnyContextCall call(nullptr);
  if (call.failed()) return call.error();
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return limit_of(*call.context(), limit, value);
}

// A larger heap, buffer or stack takes GPU memory at once (the real driver may wait until the next
// launch); a smaller one gives memory back.
GPUROTA_SIM_API cuCtxSetLimit(CUlimit limit, std::size_t value) {
  const AnyContextCall call(nullptr);
  if (call.failed()) return call.error();
  Context& context = *call.context();
  std::size_t before = 0;
  const CUresult known = limit_of(context, limit, &before);
  if (known != CUDA_SUCCESS) return known;
  const gpurota::sim::DeviceConfig& gpu = call.machine().config(context.device);
  std::uint64_t each = 0;  // bytes of GPU memory
  if (limit == CU_LIMIT_MALLOC_HEAP_SIZE || limit == CU_LIMIT_PRINTF_FIFO_SIZE) each = 1;
  if (limit == CU_LIMIT_STACK_SIZE) {
    each = static_cast<std::uint64_t>(gpu.multiprocessors) *
           static_cast<std::uint64_t>(gpu.threads_per_multiprocessor);
  }
  if (each != 0 && value > UINT64_MAX / each) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t more = value > before ? (value - before) * each : 0;
  const std::uint64_t less = value < before ? (before - value) * each : 0;
  if (more != 0 && !call.machine().charge(context.device, more, false)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (less != 0) call.machine().discharge(context.device, less);
  context.charged_bytes += more - less;
  context.limits[limit] = value;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuCtxGetCacheConfig(CUfunc_cache* config) {
  const AnyContextCall call(nullptr);
  if (call.failed()) return call.error();
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = call.context()->cache_config;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuCtxSetCacheConfig(CUfunc_cache config) {
  const AnyContextCall call(nullptr);
  if (call.failed()) return call.error();
  call.context()->cache_config = config;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  const AnyContextCall call(nullptr);
  if (call.failed()) return call.error();
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = call.context()->shared_config;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuCtxSetSharedMemConfig(CUsharedconfig config) {
  const AnyContextCall call(nullptr);
  if (call.failed()) return call.error();
  call.context()->shared_config = config;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuCtxResetPersistingL2Cache() {
  const ContextCall call;
  return call.error();
}

GPUROTA_SIM_API cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  const AnyContextCall call(nullptr);
  if (call.failed()) return call.error();
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  const ContextCall call;
  if (call.failed()) return call.error();
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const Context* other = call.driver().contexts.find(peer);
  if (other == nullptr || other == call.context()) return CUDA_ERROR_INVALID_CONTEXT;
  const auto& mine = call.machine().config(call.context()->device);
  const auto& its = call.machine().config(other->device);
  if (mine.peer_access == 0 || its.peer_access == 0 || other->device == call.context()->device) {
    return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  }
  const bool is_new = call.context()->peers.insert(other->ordinal).second;
  return is_new ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

GPUROTA_SIM_API cuCtxDisablePeerAccess(CUcontext peer) {
  const ContextCall call;
  if (call.failed()) return call.error();
  const Context* other = call.driver().contexts.find(peer);
  if (other == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const bool was_on = call.context()->peers.erase(other->ordinal) > 0;
  return was_on ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}
