#include "sim/cuda/api.h"

#include "sim/cuda/capture.h"
#include "sim/cuda/thread_local.h"

namespace gpurota::sim {
namespace {

GPUROTA_SIM_THREAD_LOCAL int t_per_thread_depth = 0;

}  // namespace

PerThreadStream::PerThreadStream() { ++t_per_thread_depth; }
PerThreadStream::~PerThreadStream() { --t_per_thread_depth; }
bool PerThreadStream::is_on() { return t_per_thread_depth > 0; }

Call::Call(const char* function, const char* parked)
    : driver_(Driver::get()),
      error_(driver_.ready()),
      pass_(error_ == CUDA_SUCCESS ? &driver_.machine->own_slot() : nullptr,
            parked != nullptr ? parked : function) {
  // A forked child may have inherited a locked mutex: it must not lock that mutex.
  if (error_ != CUDA_SUCCESS) return;
  lock_ = std::unique_lock(driver_.mutex);
  error_ = check_captures(driver_, function);
}

ContextCall::ContextCall(const char* function, const char* parked)
    : Call(nullptr, parked != nullptr ? parked : function) {
  if (failed()) return;
  std::vector<Context*>& stack = context_stack();
  if (stack.empty() || stack.back() == nullptr) {
    error_ = CUDA_ERROR_INVALID_CONTEXT;
    return;
  }
  context_ = driver_.contexts.find(stack.back());
  if (context_ != nullptr && context_->view_of != nullptr) {
    context_ = driver_.contexts.find(context_->view_of);
  }
  if (context_ == nullptr) {
    error_ = CUDA_ERROR_CONTEXT_IS_DESTROYED;
  } else if (driver_.machine->faults(context_->device).lost.load() != 0) {
    error_ = CUDA_ERROR_UNKNOWN;
  } else {
    error_ = context_->error.load();
  }
  if (!failed()) error_ = check_captures(driver_, function);
}

CUresult unsupported(const char* name) {
  Driver& driver = Driver::get();
  const CUresult ready = driver.ready();
  if (ready != CUDA_SUCCESS) return ready;
  driver.machine->count_unsupported(name);
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace gpurota::sim

extern "C" int gpurota_sim_unsupported(const char* name) { return gpurota::sim::unsupported(name); }
