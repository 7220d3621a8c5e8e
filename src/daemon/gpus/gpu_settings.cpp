#include "daemon/gpus/gpu_settings.h"

#include <algorithm>

namespace gpurota::daemon {
namespace {

// How much of a GPU's memory swap leases leave free. Each eviction and each restore maps and unmaps
// memory, and a driver without free memory refuses calls that it could otherwise carry out.
Bytes margin(Bytes memory) { return std::min(mib(512), Bytes(memory.count() / 64)); }

// Applies the section with the GPU's index, then the section with its UUID, which takes precedence.
// The index of a MIG instance counts within its parent, so only the UUID names an instance.
template <class Rules, class Take>
void take_named(const GpuInfo& gpu, const Rules& rules, const Take& take) {
  if (gpu.parent.value.empty()) {
    if (const auto found = rules.find(std::to_string(gpu.index)); found != rules.end()) {
      take(found->second);
    }
  }
  if (const auto found = rules.find(gpu.uuid.value); found != rules.end()) take(found->second);
}

}  // namespace

const char* to_string(config::Turns::Mode mode) {
  switch (mode) {
    case config::Turns::Mode::kAuto:
      return "auto";
    case config::Turns::Mode::kOn:
      return "on";
    case config::Turns::Mode::kOff:
      return "off";
  }
  return "auto";
}

GpuSettings settings_of(const GpuInfo& gpu, const config::Config& config,
                        const ports::StoredGpuState& set) {
  const config::Turns& site = config.turns;
  config::Turns::Gpu chosen = site.every;
  const auto take = [&](const config::Turns::Gpu& more) {
    if (more.capacity) chosen.capacity = more.capacity;
    if (more.mode) chosen.mode = more.mode;
    if (more.quantum) chosen.quantum = more.quantum;
  };
  take_named(gpu, site.gpus, take);
  take({set.capacity, config::parse_turns_mode(set.turns), set.quantum});

  GpuSettings settings;
  settings.capacity = gpu.memory;
  if (gpu.unified) settings.capacity -= config.unified_reserve.of(gpu.memory);
  if (chosen.capacity)
    settings.capacity = std::min(settings.capacity, chosen.capacity->of(gpu.memory));
  settings.turn_capacity = std::min(settings.capacity, gpu.memory - margin(gpu.memory));
  settings.mode = chosen.mode.value_or(config::Turns::Mode::kAuto);
  if (gpu.unified) settings.mode = config::Turns::Mode::kOff;  // moving needs separate host memory
  if (chosen.quantum && chosen.quantum->count() > 0) settings.quantum = chosen.quantum;
  return settings;
}

std::optional<Bytes> unlisted_of(const GpuInfo& gpu, const config::GpuRules& site) {
  std::optional<Bytes> unlisted;
  take_named(gpu, site, [&](const config::GpuRule& rule) {
    if (rule.unlisted) unlisted = rule.unlisted;
  });
  return unlisted;
}

}  // namespace gpurota::daemon
