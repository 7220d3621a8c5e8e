#include "sim/cuda/driver.h"

#include "sim/cuda/array.h"
#include "sim/cuda/capture.h"
#include "sim/cuda/external.h"
#include "sim/cuda/graph.h"
#include "sim/cuda/green.h"
#include "sim/cuda/kernel.h"
#include "sim/cuda/module.h"
#include "sim/cuda/pool.h"
#include "sim/cuda/thread_local.h"
#include "sim/cuda/user_object.h"
#include "sim/cuda/vmm.h"

#include <cstdlib>

#include <pthread.h>
#include <unistd.h>

namespace gpurota::sim {

// Never destroyed: programs also call the driver from destructors of static objects, which run
// after those of thread-local objects.
std::vector<Context*>& context_stack() {
  GPUROTA_SIM_THREAD_LOCAL bool has_ended = false;
  struct Stack {
    std::vector<Context*> contexts;
    ~Stack() { has_ended = true; }
  };
  GPUROTA_SIM_THREAD_LOCAL Stack stack;
  if (!has_ended) return stack.contexts;
  static auto& none = *new std::vector<Context*>;
  return none;
}

Driver::Driver() = default;
Driver::~Driver() = default;

Driver& Driver::get() {
  static auto* driver = new Driver;  // workers may still run when static objects are destroyed
  return *driver;
}

CUresult Driver::ready() const {
  if (forked_.load(std::memory_order_relaxed)) return CUDA_ERROR_NOT_INITIALIZED;
  if (ended_.load(std::memory_order_relaxed)) return CUDA_ERROR_DEINITIALIZED;
  if (Engine::in_host_function()) return CUDA_ERROR_NOT_PERMITTED;
  return initialised_ ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult Driver::init(unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (forked_.load()) return CUDA_ERROR_NOT_INITIALIZED;
  const std::lock_guard lock(mutex);
  if (initialised_) return CUDA_SUCCESS;
  auto found = Machine::open("");
  if (!found) return CUDA_ERROR_NO_DEVICE;
  std::vector<int> devices = visible_devices(found->state(), ::getenv("CUDA_VISIBLE_DEVICES"),
                                             ::getenv("CUDA_DEVICE_ORDER"));
  if (devices.empty()) return CUDA_ERROR_NO_DEVICE;
  if (!found->join()) return CUDA_ERROR_OPERATING_SYSTEM;
  engine.count_in(&found->own_slot().in_flight);
  machine = std::move(found);
  visible = std::move(devices);
  primary.resize(visible.size());
  default_pools.resize(visible.size());
  current_pools.resize(visible.size());
  pthread_atfork(nullptr, nullptr, [] { get().forked_ = true; });
  std::atexit([] { get().ended_ = true; });
  initialised_ = true;
  return CUDA_SUCCESS;
}

int Driver::machine_device(CUdevice ordinal) const {
  if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= visible.size()) return -1;
  return visible[static_cast<std::size_t>(ordinal)];
}

CUresult Driver::create_context(CUdevice ordinal, unsigned flags, unsigned version, Context** out) {
  const int device = machine_device(ordinal);
  if (device < 0) return CUDA_ERROR_INVALID_DEVICE;
  if (machine->faults(device).lost.load() != 0) return CUDA_ERROR_UNKNOWN;
  const DeviceConfig& config = machine->config(device);
  if (config.compute_mode == CU_COMPUTEMODE_PROHIBITED) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  if (config.compute_mode == CU_COMPUTEMODE_EXCLUSIVE_PROCESS) {
    for (const ProcessUse& other : machine->processes(device)) {
      if (other.contexts > 0 && other.pid != ::getpid()) return CUDA_ERROR_DEVICE_UNAVAILABLE;
    }
  }
  if (!machine->charge(device, config.context_bytes, false)) return CUDA_ERROR_OUT_OF_MEMORY;
  machine->count_context(device, 1);
  auto context = std::make_unique<Context>();
  context->ordinal = ordinal;
  context->device = device;
  context->flags = flags;
  context->version = version;
  context->id = machine->next_id();
  context->charged_bytes = config.context_bytes;
  context->legacy.context = context.get();
  context->legacy.is_legacy = true;
  context->legacy.id = machine->next_id();
  *out = contexts.add(std::move(context));
  return CUDA_SUCCESS;
}

std::vector<WorkPtr> Driver::tails(const Context& context) const {
  std::vector<WorkPtr> all = context.orphans;
  all.push_back(context.legacy.tail);
  for (const Stream* stream : context.streams) all.push_back(stream->tail);
  for (const auto& [thread, stream] : context.per_thread) all.push_back(stream->tail);
  return all;
}

void Driver::wait_all(const std::vector<WorkPtr>& work, std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  for (const WorkPtr& piece : work) engine.wait(piece);
  lock.lock();
}

void Driver::destroy_context(Context* context, std::unique_lock<std::mutex>& lock) {
  wait_all(tails(*context), lock);
  const std::unique_ptr<Context> dying = contexts.take(context);
  if (!dying) return;  // another thread has already taken the context
  destroy_streams_of(*this, context);
  destroy_modules_of(*this, context);
  destroy_arrays_of(*this, context);
  destroy_memory_of(*this, context);
  machine->discharge(dying->device, dying->charged_bytes);
  machine->count_context(dying->device, -1);
}

}  // namespace gpurota::sim
