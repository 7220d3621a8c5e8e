// The books of processes that are parked: what they had on the GPUs is in host memory.
#include "sim/state/machine.h"

#include <utility>

namespace gpurota::sim {

ProcessSlot* Machine::find_process(std::int32_t pid) {
  const MachineLock lock(*state_);
  reap();
  for (int i = 0; i < state_->process_end; ++i) {
    ProcessSlot& slot = state_->process[i];
    if (slot.state.load() == kSlotLive && slot.pid == pid) return &slot;
  }
  return nullptr;
}

bool Machine::take_off(ProcessSlot& slot) {
  const MachineLock lock(*state_);
  std::uint64_t sum = 0, host = 0;
  for (const DeviceUse& use : slot.use) sum += use.bytes.load();
  for (int i = 0; i < state_->process_end; ++i) {
    const ProcessSlot& each = state_->process[i];
    if (each.state.load() != kSlotFree) host += each.host_bytes.load();
  }
  const std::uint64_t budget = state_->host_budget_bytes;
  if (host > budget || sum > budget - host) return false;
  for (int i = 0; i < kMaxDevices; ++i) {
    slot.parked_bytes[i] = slot.use[i].bytes.exchange(0);
    slot.parked_contexts[i] = slot.use[i].contexts.exchange(0);
  }
  slot.host_bytes += sum;
  return true;
}

bool Machine::put_back(ProcessSlot& slot) {
  const MachineLock lock(*state_);
  reap();
  for (int i = 0; i < state_->device_count; ++i) {
    const DeviceConfig& gpu = state_->device[i];
    const std::uint64_t capacity = gpu.memory_bytes - gpu.reserved_bytes, used = used_on(i);
    if (slot.parked_bytes[i] > 0 && (used > capacity || slot.parked_bytes[i] > capacity - used)) {
      return false;
    }
  }
  for (int i = 0; i < kMaxDevices; ++i) {
    slot.host_bytes -= slot.parked_bytes[i];
    slot.use[i].bytes += std::exchange(slot.parked_bytes[i], 0);
    slot.use[i].contexts += std::exchange(slot.parked_contexts[i], 0);
  }
  return true;
}

}  // namespace gpurota::sim
