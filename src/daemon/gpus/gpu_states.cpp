#include "daemon/gpus/gpu_states.h"

#include "base/log.h"

#include <fmt/format.h>

#include <utility>

namespace gpurota::daemon {

Result<void> GpuStates::restore() {
  GPUROTA_ASSIGN_OR_RETURN(std::vector<ports::StoredGpuState> gpus, store_.load_gpus());
  for (ports::StoredGpuState& gpu : gpus) {
    if (GpuEntry* known = gpus_.find(gpu.uuid)) known->idle_since = gpu.idle_since;
    states_[gpu.uuid] = std::move(gpu);
  }
  return {};
}

std::optional<Result<void>> GpuStates::try_store() {
  ports::StoredGpuState state;
  if (!states_.empty()) {
    state = states_.begin()->second;
  } else if (!gpus_.entries().empty()) {
    state.uuid = gpus_.entries().front().info.uuid;
  } else {
    return std::nullopt;
  }
  return store_.save_gpu(state);
}

const ports::StoredGpuState& GpuStates::of(const GpuUuid& gpu) const {
  static const ports::StoredGpuState kNothing;
  const auto it = states_.find(gpu);
  return it == states_.end() ? kNothing : it->second;
}

const GpuStates::Unreserved& GpuStates::unreserved(const GpuUuid& gpu) const {
  static const Unreserved kNone;
  const auto it = unreserved_.find(gpu);
  return it == unreserved_.end() ? kNone : it->second;
}

std::vector<GpuUuid> GpuStates::last_gpus(uid_t uid) const {
  // All GPUs of a lease get the same `idle_since`, so the GPUs with the user's latest time are
  // those of the user's latest lease.
  WallTime last{};
  std::vector<GpuUuid> gpus;
  for (const auto& [uuid, state] : states_) {
    if (state.last_user != uid || state.idle_since < last) continue;
    if (state.idle_since > last) gpus.clear();
    last = state.idle_since;
    gpus.push_back(uuid);
  }
  return gpus;
}

void GpuStates::remember_use(const Lease& lease, WallTime now) {
  // A GPU with only a filler counts as idle.
  if (lease.kind == LeaseKind::kFiller) return;
  for (const LeaseGpu& gpu : lease.gpus) {
    if (GpuEntry* known = gpus_.find(gpu.uuid)) known->idle_since = now;
    ports::StoredGpuState& state = states_[gpu.uuid];
    state.uuid = gpu.uuid;
    state.idle_since = now;
    state.last_user = lease.uid;
    if (auto saved = store_.save_gpu(state); !saved) {
      log::warn("cannot store when a GPU was left, ignoring", {{"error", saved.error().message}});
    }
  }
}

template <class Change>
void GpuStates::store_change(const GpuUuid& gpu, const char* what, Change change) {
  ports::StoredGpuState& state = states_[gpu];
  state.uuid = gpu;
  change(state);
  if (auto saved = store_.save_gpu(state); !saved) {
    log::warn(fmt::format("cannot store {}, ignoring", what), {{"error", saved.error().message}});
  }
}

void GpuStates::set_context_cost(const GpuUuid& gpu, Bytes cost, const std::string& driver) {
  const ports::StoredGpuState& known = of(gpu);
  if (known.context_cost == cost && known.context_driver == driver) return;
  store_change(gpu, "what a context takes", [&](ports::StoredGpuState& state) {
    state.context_cost = cost;
    state.context_driver = driver;
  });
}

void GpuStates::set_kept(const GpuUuid& gpu, std::chrono::milliseconds kept) {
  if (of(gpu).kept == kept) return;
  store_change(gpu, "for how long a GPU was kept",
               [&](ports::StoredGpuState& state) { state.kept = kept; });
}

void GpuStates::set_ages(const GpuUuid& gpu, std::vector<ports::StoredAge> ages) {
  store_change(gpu, "since when a GPU is used as it is",
               [&](ports::StoredGpuState& state) { state.ages = std::move(ages); });
}

void GpuStates::set_baseline(const GpuUuid& gpu, ports::StoredBaseline baseline) {
  store_change(gpu, "what is normally used on a GPU",
               [&](ports::StoredGpuState& state) { state.baseline = std::move(baseline); });
}

Result<void> GpuStates::set_draining(const GpuUuid& gpu, bool draining, const std::string& reason) {
  ports::StoredGpuState state = of(gpu);
  state.uuid = gpu;
  // Draining the GPU once more without a reason keeps the earlier reason.
  const bool keeps = draining && state.draining && reason.empty();
  if (!keeps) state.drain_reason = draining ? reason : "";
  state.draining = draining;
  GPUROTA_TRY(store_.save_gpu(state));
  states_[gpu] = std::move(state);
  log::info(draining ? "GPU drains" : "GPU is back in service", {{"gpu", gpu.value}});
  return {};
}

Result<void> GpuStates::set(const ports::StoredGpuState& state) {
  GPUROTA_TRY(store_.save_gpu(state));
  states_[state.uuid] = state;
  return {};
}

}  // namespace gpurota::daemon
