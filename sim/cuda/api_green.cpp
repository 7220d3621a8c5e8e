// Green contexts. The number of multiprocessors is stored and limits nothing.
#include "sim/cuda/api.h"
#include "sim/cuda/green.h"

#include <algorithm>

using gpurota::sim::Call;
using gpurota::sim::Context;
using gpurota::sim::Driver;
using gpurota::sim::GreenContext;
using gpurota::sim::Primary;
using gpurota::sim::ResourceDesc;
using gpurota::sim::Stream;

namespace {

constexpr unsigned kSmallestPart = 2;

CUresult fill(CUdevResource* out, unsigned processors) {
  *out = {};
  out->type = CU_DEV_RESOURCE_TYPE_SM;
  out->of.sm.smCount = processors;
  out->of.sm.minSmPartitionSize = kSmallestPart;
  out->of.sm.smCoscheduledAlignment = kSmallestPart;
  return CUDA_SUCCESS;
}

unsigned processors_of(const Call& call, int machine_device) {
  return static_cast<unsigned>(call.machine().config(machine_device).multiprocessors);
}

CUresult retain_primary(Driver& driver, int ordinal, Context** out) {
  Primary& primary = driver.primary[static_cast<std::size_t>(ordinal)];
  if (primary.context == nullptr) {
    const CUresult result = driver.create_context(ordinal, primary.flags, 3020, &primary.context);
    if (result != CUDA_SUCCESS) return result;
    primary.context->is_primary = true;
  }
  ++primary.references;
  *out = primary.context;
  return CUDA_SUCCESS;
}

void release_primary(Call& call, int ordinal) {
  Primary& primary = call.driver().primary[static_cast<std::size_t>(ordinal)];
  if (primary.references == 0 || --primary.references > 0) return;
  Context* context = primary.context;
  primary.context = nullptr;
  if (context != nullptr) call.driver().destroy_context(context, call.lock());
}

class GreenCall : public Call {
 public:
  explicit GreenCall(CUgreenCtx handle) {
    if (failed()) return;
    green_ = driver_.greens.find(handle);
    if (green_ == nullptr) error_ = CUDA_ERROR_INVALID_VALUE;
  }
  GreenContext& green() const { return *green_; }

 private:
  GreenContext* green_ = nullptr;
};

}  // namespace

GPUROTA_SIM_API cuDeviceGetDevResource(CUdevice ordinal, CUdevResource* out, int type) {
  const Call call;
  if (call.failed()) return call.error();
  const int device = call.driver().machine_device(ordinal);
  if (device < 0) return CUDA_ERROR_INVALID_DEVICE;
  if (out == nullptr || type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_VALUE;
  return fill(out, processors_of(call, device));
}

GPUROTA_SIM_API cuDevSmResourceSplitByCount(CUdevResource* parts, unsigned* count,
                                            const CUdevResource* whole, CUdevResource* rest,
                                            unsigned, unsigned least) {
  const Call call;
  if (call.failed()) return call.error();
  if (count == nullptr || whole == nullptr || whole->type != CU_DEV_RESOURCE_TYPE_SM) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const unsigned size =
      (std::max(least, kSmallestPart) + kSmallestPart - 1) / kSmallestPart * kSmallestPart;
  const unsigned most = whole->of.sm.smCount / size;
  if (most == 0) return CUDA_ERROR_INVALID_VALUE;
  const unsigned made = parts == nullptr ? most : std::min(*count, most);
  for (unsigned i = 0; parts != nullptr && i < made; ++i) (void)fill(&parts[i], size);
  if (rest != nullptr) (void)fill(rest, whole->of.sm.smCount - made * size);
  *count = made;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuDevResourceGenerateDesc(CUdevResourceDesc* out, CUdevResource* parts,
                                          unsigned count) {
  const Call call;
  if (call.failed()) return call.error();
  if (out == nullptr || parts == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  auto description = std::make_unique<ResourceDesc>();
  for (unsigned i = 0; i < count; ++i) {
    if (parts[i].type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_VALUE;
    description->processors += parts[i].of.sm.smCount;
  }
  auto* raw = call.driver().resource_descs.add(std::move(description));
  *out = reinterpret_cast<CUdevResourceDesc>(raw);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuGreenCtxCreate(CUgreenCtx* out, CUdevResourceDesc handle, CUdevice ordinal,
                                 unsigned flags) {
  const Call call;
  if (call.failed()) return call.error();
  Driver& driver = call.driver();
  const ResourceDesc* description = driver.resource_descs.find(handle);
  if (driver.machine_device(ordinal) < 0) return CUDA_ERROR_INVALID_DEVICE;
  if (out == nullptr || description == nullptr || flags != CU_GREEN_CTX_DEFAULT_STREAM) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Context* primary = nullptr;
  const CUresult result = retain_primary(driver, ordinal, &primary);
  if (result != CUDA_SUCCESS) return result;
  auto view = std::make_unique<Context>();
  view->view_of = primary;
  view->ordinal = ordinal;
  view->device = primary->device;
  view->id = call.machine().next_id();
  auto green = std::make_unique<GreenContext>();
  green->ordinal = ordinal;
  green->processors = description->processors;
  green->view = driver.contexts.add(std::move(view));
  *out = reinterpret_cast<CUgreenCtx>(driver.greens.add(std::move(green)));
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuGreenCtxDestroy(CUgreenCtx handle) {
  GreenCall call(handle);
  if (call.failed()) return call.error();
  const auto gone = call.driver().greens.take(&call.green());
  (void)call.driver().contexts.take(gone->view);
  release_primary(call, gone->ordinal);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuCtxFromGreenCtx(CUcontext* out, CUgreenCtx handle) {
  const GreenCall call(handle);
  if (call.failed()) return call.error();
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = reinterpret_cast<CUcontext>(call.green().view);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuGreenCtxGetDevResource(CUgreenCtx handle, CUdevResource* out, int type) {
  const GreenCall call(handle);
  if (call.failed()) return call.error();
  if (out == nullptr || type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_VALUE;
  return fill(out, call.green().processors);
}

GPUROTA_SIM_API cuGreenCtxStreamCreate(CUstream* out, CUgreenCtx handle, unsigned flags,
                                       int priority) {
  const GreenCall call(handle);
  if (call.failed()) return call.error();
  Context* context = call.driver().contexts.find(call.green().view->view_of);
  if (context == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (out == nullptr || flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  auto stream = std::make_unique<Stream>();
  stream->context = context;
  stream->flags = flags;
  stream->priority = priority;
  stream->id = call.machine().next_id();
  Stream* raw = call.driver().streams.add(std::move(stream));
  context->streams.insert(raw);
  *out = reinterpret_cast<CUstream>(raw);
  return CUDA_SUCCESS;
}
