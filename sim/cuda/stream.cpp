#include "sim/cuda/stream.h"

#include "sim/cuda/capture.h"
#include "sim/cuda/graph.h"
#include "sim/cuda/perform.h"
#include "sim/cuda/pool.h"

namespace gpurota::sim {
namespace {

Stream& per_thread_stream(Driver& driver, Context& context) {
  auto& stream = context.per_thread[std::this_thread::get_id()];
  if (!stream) {
    stream = std::make_unique<Stream>();
    stream->context = &context;
    stream->id = driver.machine->next_id();
  }
  return *stream;
}

}  // namespace

Stream* resolve_stream(Driver& driver, Context& context, CUstream handle) {
  if (handle == nullptr) {
    return PerThreadStream::is_on() ? &per_thread_stream(driver, context) : &context.legacy;
  }
  if (handle == CU_STREAM_LEGACY) return &context.legacy;
  if (handle == CU_STREAM_PER_THREAD) return &per_thread_stream(driver, context);
  return driver.streams.find(handle);
}

StreamCall::StreamCall(CUstream handle, const char* function) : ContextCall(nullptr, function) {
  if (failed()) return;
  stream_ = resolve_stream(driver_, *context(), handle);
  error_ =
      stream_ == nullptr ? CUDA_ERROR_INVALID_HANDLE : check_captures(driver_, *stream_, function);
}

std::vector<WorkPtr> dependencies(const Driver&, Stream& stream) {
  std::vector<WorkPtr> before = std::move(stream.extra);
  stream.extra.clear();
  before.push_back(stream.tail);
  Context& context = *stream.context;
  before.push_back(context.gate);
  if (stream.blocks_with_legacy()) {
    before.push_back(context.legacy.tail);
  } else if (stream.is_legacy) {
    for (const Stream* other : context.streams) {
      if (other->blocks_with_legacy()) before.push_back(other->tail);
    }
    for (const auto& [thread, other] : context.per_thread) before.push_back(other->tail);
  }
  return before;
}

WorkPtr append(Driver& driver, Stream& stream, std::function<CUresult()> body) {
  auto work = std::make_shared<Work>(std::move(body));
  const std::vector<WorkPtr> before = dependencies(driver, stream);
  stream.tail = work;
  driver.engine.submit(work, before);
  return work;
}

std::function<CUresult()> body_of(Driver& driver, Context& context, Operation operation,
                                  bool is_sticky) {
  return [&driver, &context, operation = std::move(operation), is_sticky] {
    const CUresult before = context.error.load();
    if (before != CUDA_SUCCESS) return before;
    const CUresult result = perform(driver, context, operation);
    if (result != CUDA_SUCCESS && is_sticky) context.error = result;
    return result;
  };
}

CUresult StreamCall::submit(Operation operation, Wait wait) {
  if (stream_->capture) {
    if (wait == Wait::kYes) {
      stream_->capture->is_valid = false;
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return capture_operation(driver_, *stream_, std::move(operation), nullptr);
  }
  const CUresult valid = validate(driver_, operation, false);
  if (valid != CUDA_SUCCESS) return valid;
  auto body = body_of(driver_, *stream_->context, std::move(operation), wait == Wait::kNo);
  if (wait == Wait::kNo) {
    append(driver_, *stream_, std::move(body));
    return CUDA_SUCCESS;
  }
  auto work = std::make_shared<Work>(std::move(body));
  const std::vector<WorkPtr> before = dependencies(driver_, *stream_);
  stream_->tail = work;
  lock_.unlock();
  const CUresult result = driver_.engine.run(work, before);
  lock_.lock();
  return result;
}

}  // namespace gpurota::sim
