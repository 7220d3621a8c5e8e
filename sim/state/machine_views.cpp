// The views of the machine's books that NVML and cuMemGetInfo show.
#include "sim/state/machine.h"

#include <algorithm>
#include <cstring>

namespace gpurota::sim {
namespace {

std::uint64_t busy_us(const Activity& activity, std::uint64_t slice) {
  const std::uint64_t entry =
      activity.slice[slice % kActivitySlices].load(std::memory_order_relaxed);
  return (entry >> 32) == (slice & 0xffffffffU) ? entry & 0xffffffffU : 0;
}

}  // namespace

void Machine::add_activity(int device, std::uint64_t from_ns, std::uint64_t to_ns) {
  Activity& activity = state_->process[slot_].use[device].activity;
  while (from_ns < to_ns) {
    const std::uint64_t slice = from_ns / kActivitySliceNs;
    const std::uint64_t until = std::min(to_ns, (slice + 1) * kActivitySliceNs);
    auto& entry = activity.slice[slice % kActivitySlices];
    const std::uint64_t tag = (slice & 0xffffffffU) << 32;
    std::uint64_t seen = entry.load();
    std::uint64_t next = 0;
    do {
      const std::uint64_t before = (seen & 0xffffffff00000000U) == tag ? seen & 0xffffffffU : 0;
      next = tag | std::min<std::uint64_t>(before + (until - from_ns) / 1000, 0xffffffffU);
    } while (!entry.compare_exchange_weak(seen, next));
    from_ns = until;
  }
}

unsigned Machine::utilisation(int device, std::int32_t pid) {
  const std::uint64_t now = now_ns() / kActivitySliceNs;
  std::uint64_t busy = 0;
  for (const ProcessSlot& slot : state_->process) {
    if (slot.state.load() == kSlotFree || (pid != 0 && slot.pid != pid)) continue;
    for (std::uint64_t back = 1; back <= 10 && back <= now; ++back) {
      busy += std::min(busy_us(slot.use[device].activity, now - back), kActivitySliceNs / 1000);
    }
  }
  const std::uint64_t percent = busy / 10'000;  // of 1,000,000 microseconds
  const std::uint64_t set = pid == 0 ? state_->faults[device].load_permille.load() / 10 : 0;
  return static_cast<unsigned>(std::min<std::uint64_t>(100, percent + set));
}

DeviceTotals Machine::totals(int device) {
  const MachineLock lock(*state_);
  reap();
  const DeviceConfig& gpu = state_->device[device];
  DeviceTotals totals{gpu.memory_bytes - gpu.reserved_bytes, gpu.reserved_bytes, used_on(device)};
  for (int i = 0; i < state_->device_count; ++i) {
    // MIG instances are parts of the GPU: count their use as the GPU's.
    if (state_->device[i].parent == device) totals.used += used_on(i);
  }
  return totals;
}

std::vector<ProcessUse> Machine::processes(int device) {
  const MachineLock lock(*state_);
  reap();
  std::vector<ProcessUse> found;
  for (int i = 0; i < state_->process_end; ++i) {
    const ProcessSlot& slot = state_->process[i];
    if (slot.state.load() == kSlotFree) continue;
    const DeviceUse& use = slot.use[device];
    const std::uint64_t bytes = use.bytes.load() + shared_bytes(device, i);
    if (use.contexts.load() > 0 || bytes > 0) found.push_back({slot.pid, bytes, use.contexts});
  }
  return found;
}

int Machine::population() {
  const MachineLock lock(*state_);
  reap();
  int count = 0;
  for (const ProcessSlot& slot : state_->process) count += slot.state.load() != kSlotFree ? 1 : 0;
  return count;
}

void Machine::count_unsupported(const char* name) {
  const MachineLock lock(*state_);
  for (UnsupportedCall& call : state_->unsupported) {
    if (call.name[0] == '\0') std::strncpy(call.name, name, sizeof call.name - 1);
    if (std::strcmp(call.name, name) != 0) continue;
    ++call.count;
    break;
  }
}

}  // namespace gpurota::sim
