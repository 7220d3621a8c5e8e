// Parking another process: lock, checkpoint, restore, unlock. The steps, the states and the errors
// are those measured with NVIDIA's driver (docs/design/park.md).
#include "abi/cuda_checkpoint.h"
#include "sim/cuda/api.h"
#include "sim/cuda/park_pass.h"

#include <chrono>
#include <thread>

using gpurota::sim::Driver;
using gpurota::sim::Machine;
using gpurota::sim::ProcessSlot;

namespace {

constexpr auto kPace = std::chrono::milliseconds(1);

// The process that a call is about. Does not take the driver's lock, so a process can also name
// itself.
class Target {
 public:
  explicit Target(int pid) : error_(Driver::get().ready()) {
    if (error_ != CUDA_SUCCESS) return;
    slot_ = machine().find_process(pid);
    if (slot_ == nullptr) error_ = CUDA_ERROR_INVALID_VALUE;
  }
  CUresult error() const { return error_; }
  Machine& machine() const { return *Driver::get().machine; }
  ProcessSlot& slot() const { return *slot_; }
  bool lives(int pid) const { return machine().find_process(pid) == slot_; }

  // Waits for as long as a step takes.
  void take_time() const {
    const std::uint64_t delay = machine().state().park_delay_ns.load();
    if (delay > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(delay));
  }

 private:
  CUresult error_;
  ProcessSlot* slot_ = nullptr;
};

void release(ProcessSlot& slot) {
  slot.park = gpurota::sim::kParkRunning;
  gpurota::sim::wake_parked(slot);
}

}  // namespace

GPUROTA_SIM_API cuCheckpointProcessGetState(int pid, CUprocessState* state) {
  const Target target(pid);
  if (target.error() != CUDA_SUCCESS) return target.error();
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *state = static_cast<CUprocessState>(target.slot().park.load());
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuCheckpointProcessLock(int pid, CUcheckpointLockArgs* args) {
  const Target target(pid);
  if (target.error() != CUDA_SUCCESS) return target.error();
  ProcessSlot& slot = target.slot();
  std::uint32_t running = gpurota::sim::kParkRunning;
  if (!slot.park.compare_exchange_strong(running, gpurota::sim::kParkLocked)) {
    return CUDA_ERROR_ILLEGAL_STATE;
  }
  target.take_time();
  const unsigned timeout = args != nullptr ? args->timeoutMs : 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout);
  while (slot.in_calls.load() > 0 || slot.in_flight.load() > 0) {
    if (timeout > 0 && std::chrono::steady_clock::now() >= until) {
      release(slot);
      return CUDA_ERROR_NOT_READY;
    }
    std::this_thread::sleep_for(kPace);
  }
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs*) {
  const Target target(pid);
  if (target.error() != CUDA_SUCCESS) return target.error();
  ProcessSlot& slot = target.slot();
  if (slot.park.load() != gpurota::sim::kParkLocked) return CUDA_ERROR_ILLEGAL_STATE;
  if (slot.managed.load() > 0) return CUDA_ERROR_NOT_SUPPORTED;
  target.take_time();
  if (!target.lives(pid)) return CUDA_ERROR_OPERATING_SYSTEM;
  if (!target.machine().take_off(slot)) return CUDA_ERROR_OUT_OF_MEMORY;
  slot.park = gpurota::sim::kParkCheckpointed;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs* args) {
  const Target target(pid);
  if (target.error() != CUDA_SUCCESS) return target.error();
  ProcessSlot& slot = target.slot();
  if (slot.park.load() != gpurota::sim::kParkCheckpointed) return CUDA_ERROR_ILLEGAL_STATE;
  if (args != nullptr && args->gpuPairsCount > 0) {
    return gpurota::sim::unsupported("restoring to another GPU");
  }
  target.take_time();
  if (!target.machine().put_back(slot)) return CUDA_ERROR_OUT_OF_MEMORY;
  slot.park = gpurota::sim::kParkLocked;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs*) {
  const Target target(pid);
  if (target.error() != CUDA_SUCCESS) return target.error();
  if (target.slot().park.load() != gpurota::sim::kParkLocked) return CUDA_ERROR_ILLEGAL_STATE;
  target.take_time();
  release(target.slot());
  return CUDA_SUCCESS;
}
