// Streams: creating, querying, synchronizing and destroying them; host functions and values in
// stream order.
#include "sim/cuda/capture.h"
#include "sim/cuda/graph.h"
#include "sim/cuda/pool.h"
#include "sim/cuda/stream.h"

#include <algorithm>

using gpurota::sim::Context;
using gpurota::sim::ContextCall;
using gpurota::sim::HostOp;
using gpurota::sim::MemOp;
using gpurota::sim::Stream;
using gpurota::sim::StreamCall;
using gpurota::sim::WorkPtr;

namespace gpurota::sim {

void destroy_streams_of(Driver& driver, Context* context) {
  for (Stream* stream :
       driver.streams.select([&](const Stream& s) { return s.context == context; })) {
    (void)driver.streams.take(stream);
  }
  for (Event* event : driver.events.select([&](const Event& e) { return e.context == context; })) {
    (void)driver.events.take(event);
  }
  for (GraphExec* exec :
       driver.execs.select([&](const GraphExec& e) { return e.context == context; })) {
    (void)driver.execs.take(exec);
  }
  std::erase_if(driver.captures, [&](const auto& capture) { return capture->context == context; });
}

}  // namespace gpurota::sim

namespace {

constexpr int kGreatestPriority = -5;

CUresult create(CUstream* out, unsigned flags, int priority) {
  const ContextCall call;
  if (call.failed()) return call.error();
  if (out == nullptr || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto stream = std::make_unique<Stream>();
  stream->context = call.context();
  stream->flags = flags;
  stream->priority = std::clamp(priority, kGreatestPriority, 0);
  stream->id = call.machine().next_id();
  Stream* raw = call.driver().streams.add(std::move(stream));
  call.context()->streams.insert(raw);
  *out = reinterpret_cast<CUstream>(raw);
  return CUDA_SUCCESS;
}

CUresult destroy(CUstream handle) {
  StreamCall call(handle);
  if (call.failed()) return call.error();
  Stream* stream = call.driver().streams.find(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  gpurota::sim::leave_capture(*stream);
  // The stream's pending work continues. The legacy stream and the end of the context must still
  // wait for it.
  gpurota::sim::Context& context = *stream->context;
  if (stream->blocks_with_legacy()) context.legacy.extra.push_back(stream->tail);
  std::erase_if(context.orphans, [](const WorkPtr& work) { return work->is_done(); });
  if (stream->tail) context.orphans.push_back(stream->tail);
  context.streams.erase(stream);
  (void)call.driver().streams.take(stream);
  return CUDA_SUCCESS;
}

std::vector<WorkPtr> all_before(StreamCall& call) {
  Stream& stream = call.stream();
  std::vector<WorkPtr> works = gpurota::sim::dependencies(call.driver(), stream);
  if (!stream.is_legacy) works = {stream.tail};
  return works;
}

}  // namespace

GPUROTA_SIM_API cuStreamCreate(CUstream* out, unsigned flags) { return create(out, flags, 0); }

GPUROTA_SIM_API cuStreamCreateWithPriority(CUstream* out, unsigned flags, int priority) {
  return create(out, flags, priority);
}

GPUROTA_SIM_API cuStreamDestroy_v2(CUstream stream) { return destroy(stream); }
GPUROTA_SIM_API cuStreamDestroy(CUstream stream) { return destroy(stream); }

GPUROTA_SIM_STREAM_API(cuStreamGetPriority, _ptsz, (CUstream handle, int* priority),
                       (handle, priority)) {
  const StreamCall call(handle);
  if (call.failed()) return call.error();
  if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *priority = call.stream().priority;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_STREAM_API(cuStreamGetFlags, _ptsz, (CUstream handle, unsigned* flags),
                       (handle, flags)) {
  const StreamCall call(handle);
  if (call.failed()) return call.error();
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = call.stream().flags;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_STREAM_API(cuStreamGetId, _ptsz, (CUstream handle, unsigned long long* id),
                       (handle, id)) {
  const StreamCall call(handle);
  if (call.failed()) return call.error();
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = call.stream().id;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_STREAM_API(cuStreamGetCtx, _ptsz, (CUstream handle, CUcontext* out), (handle, out)) {
  const StreamCall call(handle);
  if (call.failed()) return call.error();
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = reinterpret_cast<CUcontext>(call.stream().context);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_STREAM_API(cuStreamGetCtx_v2, _ptsz,
                       (CUstream handle, CUcontext* out, CUgreenCtx* green), (handle, out, green)) {
  const StreamCall call(handle);
  if (call.failed()) return call.error();
  if (out == nullptr || green == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = reinterpret_cast<CUcontext>(call.stream().context);
  *green = nullptr;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_STREAM_API(cuStreamGetDevice, _ptsz, (CUstream handle, CUdevice* out), (handle, out)) {
  const StreamCall call(handle);
  if (call.failed()) return call.error();
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = call.stream().context->ordinal;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_STREAM_API(cuStreamQuery, _ptsz, (CUstream handle), (handle)) {
  StreamCall call(handle);
  if (call.failed()) return call.error();
  Stream& stream = call.stream();
  const bool is_done = stream.tail == nullptr || stream.tail->is_done();
  return is_done ? stream.context->error.load() : CUDA_ERROR_NOT_READY;
}

GPUROTA_SIM_STREAM_API(cuStreamSynchronize, _ptsz, (CUstream handle), (handle)) {
  StreamCall call(handle);
  if (call.failed()) return call.error();
  Context* context = call.stream().context;
  call.driver().wait_all(all_before(call), call.lock());
  if (call.driver().contexts.find(context) == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  gpurota::sim::trim_pools_of(call.driver(), context->ordinal);
  return context->error.load();
}

GPUROTA_SIM_STREAM_API(cuLaunchHostFunc, _ptsz, (CUstream handle, CUhostFn function, void* data),
                       (handle, function, data)) {
  StreamCall call(handle);
  if (call.failed()) return call.error();
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return call.submit(HostOp{function, data}, StreamCall::Wait::kNo);
}

// Unlike a host function, a callback also runs after failed work, and gets the error.
GPUROTA_SIM_STREAM_API(cuStreamAddCallback, _ptsz,
                       (CUstream handle, CUstreamCallback callback, void* data, unsigned flags),
                       (handle, callback, data, flags)) {
  StreamCall call(handle);
  if (call.failed()) return call.error();
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  Context* context = call.stream().context;
  gpurota::sim::append(call.driver(), call.stream(), [context, handle, callback, data] {
    gpurota::sim::Engine::set_in_host_function(true);
    callback(handle, context->error.load(), data);
    gpurota::sim::Engine::set_in_host_function(false);
    return CUDA_SUCCESS;
  });
  return CUDA_SUCCESS;
}

GPUROTA_SIM_STREAM_API(cuStreamAttachMemAsync, _ptsz,
                       (CUstream handle, CUdeviceptr address, std::size_t bytes, unsigned flags),
                       (handle, address, bytes, flags)) {
  if (bytes > 0 && flags == 0) return CUDA_ERROR_INVALID_VALUE;
  const StreamCall call(handle);
  if (call.failed()) return call.error();
  return call.driver().space.find(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

namespace {

CUresult memory_operation(CUstream handle, const MemOp& op) {
  StreamCall call(handle);
  if (call.failed()) return call.error();
  const std::size_t bytes = op.is_64_bit ? 8 : 4;
  if (op.address % bytes != 0 || !call.driver().space.find(op.address)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return call.submit(op, StreamCall::Wait::kNo);
}

}  // namespace

#define GPUROTA_SIM_VALUE_API(name, type, is_wait, is_64_bit)                                \
  GPUROTA_SIM_STREAM_API(name, _ptsz,                                                        \
                         (CUstream handle, CUdeviceptr address, type value, unsigned flags), \
                         (handle, address, value, flags)) {                                  \
    return memory_operation(handle, {address, value, flags, is_wait, is_64_bit});            \
  }

GPUROTA_SIM_VALUE_API(cuStreamWaitValue32, cuuint32_t, true, false)
GPUROTA_SIM_VALUE_API(cuStreamWaitValue32_v2, cuuint32_t, true, false)
GPUROTA_SIM_VALUE_API(cuStreamWaitValue64, cuuint64_t, true, true)
GPUROTA_SIM_VALUE_API(cuStreamWaitValue64_v2, cuuint64_t, true, true)
GPUROTA_SIM_VALUE_API(cuStreamWriteValue32, cuuint32_t, false, false)
GPUROTA_SIM_VALUE_API(cuStreamWriteValue32_v2, cuuint32_t, false, false)
GPUROTA_SIM_VALUE_API(cuStreamWriteValue64, cuuint64_t, false, true)
GPUROTA_SIM_VALUE_API(cuStreamWriteValue64_v2, cuuint64_t, false, true)
