// What the leases come to on each GPU, what is known of the GPUs besides, and whose a process is: part
// of lease_manager.cpp.
#include "base/log.h"
#include "base/text.h"
#include "daemon/gpus/gpu_settings.h"
#include "daemon/leases/lease_manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace gpurota::daemon {
namespace {

// As seen on this GPU, else on another of its kind; zero: never seen.
Bytes context_cost(const lease::GrantBook& grants, const GpuTable& gpus, const GpuInfo& info) {
  const Bytes own = grants.context_cost(info.uuid);
  if (!own.is_zero()) return own;
  Bytes least;
  for (const GpuEntry& other : gpus.entries()) {
    if (other.info.name != info.name) continue;
    const Bytes cost = grants.context_cost(other.info.uuid);
    if (!cost.is_zero() && (least.is_zero() || cost < least)) least = cost;
  }
  return least;
}

}  // namespace

void LeaseManager::set_unreserved_use(const GpuUuid& gpu, Bytes used, std::map<uid_t, Bytes> by) {
  unreserved_[gpu] = used;
  unreserved_by_[gpu] = std::move(by);
}

Bytes LeaseManager::unreserved_use(const GpuUuid& gpu) const {
  const auto it = unreserved_.find(gpu);
  return it == unreserved_.end() ? Bytes() : it->second;
}

std::vector<lease::GpuRoom> LeaseManager::rooms() const {
  std::vector<lease::GpuRoom> rooms;
  for (const GpuEntry& gpu : parts_.gpus.entries()) {
    lease::GpuRoom room;
    room.info = gpu.info;
    const ports::StoredGpuState& state = gpu_state(gpu.info.uuid);
    const GpuSettings settings = settings_of(gpu.info, parts_.config.turns, state);
    room.capacity = settings.capacity;
    room.swap_capacity = settings.turn_capacity;
    if (parts_.turns_need) {
      std::tie(room.swap_needed, room.swap_wired) = parts_.turns_need(gpu.info.uuid);
    }
    room.unreserved_use = unreserved_use(gpu.info.uuid);
    room.in_unreserved_use = room.unreserved_use > parts_.config.unreserved_threshold;
    room.context_cost = context_cost(parts_.grants, parts_.gpus, gpu.info);
    if (const auto by = unreserved_by_.find(gpu.info.uuid); by != unreserved_by_.end()) {
      room.unreserved_by = by->second;
    }
    room.idle_since = state.idle_since;
    room.draining = state.draining;
    room.drain_reason = state.drain_reason;
    room.error = gpu.sample.error;
    for (const auto& [id, entry] : entries_) {
      const LeaseGpu* share = entry.lease.find_gpu(gpu.info.uuid);
      if (!share) continue;
      if (share->swap && entry.lease.kind == LeaseKind::kFiller) {
        add_filler(room, entry);
        continue;
      }
      ++room.leases;
      room.exclusive |= !share->limit;
      if (share->swap) {
        ++room.swap_leases;
        room.swap_needed = std::max(room.swap_needed, share->limit.value_or(Bytes()));
      } else {
        room.reserved += share->limit.value_or(room.capacity);
        const auto account = parts_.grants.find(id, gpu.info.uuid);
        if (account && share->limit) {
          room.above_limits += account.if_there()->charged() - *share->limit;
        }
      }
      room.holders +=
          fmt::format("{}{} ({}{})", room.holders.empty() ? "" : ", ",
                      display_text(parts_.processes.user_name(entry.lease.uid), 32), to_string(id),
                      !share->limit ? ""
                      : share->swap ? ", takes turns"
                                    : ", " + to_string(*share->limit));
    }
    rooms.push_back(std::move(room));
  }
  return rooms;
}

// One that could be moved out has its GPU to itself until it is, then only what of it stays.
void LeaseManager::add_filler(lease::GpuRoom& room, const LeaseEntry& entry) const {
  const auto stay = parts_.stay_of ? parts_.stay_of(entry.lease.id) : std::nullopt;
  const bool out = stay && stay->moved_out;
  ++room.leases;
  room.exclusive |= !out;
  room.reserved += out ? stay->stays : room.capacity;
  room.holders += fmt::format("{}{} ({}, a filler{})", room.holders.empty() ? "" : ", ",
                              display_text(parts_.processes.user_name(entry.lease.uid), 32),
                              to_string(entry.lease.id), out ? " in host memory" : "");
}

std::vector<lease::Occupant> LeaseManager::occupants() const {
  const bool keeps = parts_.config.expired_reservation == config::Expired::kKeep;
  std::vector<lease::Occupant> occupants;
  for (const auto& [id, entry] : entries_) {
    lease::Occupant occupant;
    occupant.id = id;
    occupant.kind = entry.lease.kind;
    occupant.user = parts_.processes.user_name(entry.lease.uid);
    occupant.gpus = entry.lease.gpus;
    occupant.expired = entry.lease.state == LeaseState::kExpired && keeps;
    if (!occupant.expired) occupant.ends = entry.lease.ends;
    occupant.ending = entry.cause.has_value();
    if (entry.lease.kind == LeaseKind::kFiller && parts_.stay_of) {
      if (const auto stay = parts_.stay_of(id)) {
        occupant.stays = stay->stays;
        occupant.moved_out = stay->moved_out;
      }
    }
    occupants.push_back(std::move(occupant));
  }
  return occupants;
}

const ports::StoredGpuState& LeaseManager::gpu_state(const GpuUuid& gpu) const {
  static const ports::StoredGpuState kNothing;
  const auto it = gpu_states_.find(gpu);
  return it == gpu_states_.end() ? kNothing : it->second;
}

std::vector<GpuUuid> LeaseManager::last_gpus(uid_t uid) const {
  // All those of their latest lease: they were left at the same time.
  WallTime last{};
  std::vector<GpuUuid> gpus;
  for (const auto& [uuid, state] : gpu_states_) {
    if (state.last_user != uid || state.idle_since < last) continue;
    if (state.idle_since > last) gpus.clear();
    last = state.idle_since;
    gpus.push_back(uuid);
  }
  return gpus;
}

void LeaseManager::remember_use(const LeaseEntry& entry) {
  // For everybody else the GPU was idle meanwhile.
  if (entry.lease.kind == LeaseKind::kFiller) return;
  const WallTime now = parts_.wall_clock();
  for (const LeaseGpu& gpu : entry.lease.gpus) {
    if (GpuEntry* known = parts_.gpus.find(gpu.uuid)) known->idle_since = now;
    ports::StoredGpuState& state = gpu_states_[gpu.uuid];
    state.uuid = gpu.uuid;
    state.idle_since = now;
    state.last_user = entry.lease.uid;
    if (auto saved = parts_.store.save_gpu(state); !saved) {
      log::warn("cannot store when a GPU was left, ignoring", {{"error", saved.error().message}});
    }
  }
}

void LeaseManager::set_context_cost(const GpuUuid& gpu, Bytes cost, const std::string& driver) {
  const ports::StoredGpuState& known = gpu_state(gpu);
  if (known.context_cost == cost && known.context_driver == driver) return;
  ports::StoredGpuState& state = gpu_states_[gpu];
  state.uuid = gpu;
  state.context_cost = cost;
  state.context_driver = driver;
  if (auto saved = parts_.store.save_gpu(state); !saved) {
    log::warn("cannot store what a context takes, ignoring", {{"error", saved.error().message}});
  }
}

Result<void> LeaseManager::set_draining(const GpuUuid& gpu, bool draining,
                                        const std::string& reason) {
  ports::StoredGpuState state = gpu_state(gpu);
  state.uuid = gpu;
  state.draining = draining;
  state.drain_reason = draining ? reason : "";
  GPUROTA_TRY(parts_.store.save_gpu(state));
  gpu_states_[gpu] = std::move(state);
  log::info(draining ? "GPU drains" : "GPU is back in service", {{"gpu", gpu.value}});
  return {};
}

Result<void> LeaseManager::set_gpu(const ports::StoredGpuState& state) {
  GPUROTA_TRY(parts_.store.save_gpu(state));
  gpu_states_[state.uuid] = state;
  return {};
}

void LeaseManager::check_store() {
  while (!unremoved_.empty() && parts_.store.remove_lease(*unremoved_.begin())) {
    unremoved_.erase(unremoved_.begin());
  }
  unstored_ends_.write_again([this](std::uint64_t id) { return save_end(LeaseId{id}); });
  ports::StoredGpuState state;
  if (!gpu_states_.empty()) {
    state = gpu_states_.begin()->second;
  } else if (!parts_.gpus.entries().empty()) {
    state.uuid = parts_.gpus.entries().front().info.uuid;
  } else {
    return;
  }
  const auto saved = parts_.store.save_gpu(state);
  store_error_ = saved ? std::nullopt : std::optional(saved.error());
}

std::optional<LeaseId> LeaseManager::lease_of_cgroup(const std::string& cgroup) const {
  for (const auto& [id, entry] : entries_) {
    if (ports::is_in_cgroup(cgroup, entry.members.cgroup())) return id;
    for (const auto& [pid, command] : entry.commands) {
      if (ports::is_in_cgroup(cgroup, command.members.cgroup())) return id;
    }
  }
  return std::nullopt;
}

std::optional<LeaseId> LeaseManager::lease_of_process(const ports::ProcessId& process) const {
  for (const auto& [id, entry] : entries_) {
    if (entry.members.contains(process)) return id;
    for (const auto& [main, command] : entry.commands) {
      if (command.members.contains(process)) return id;
    }
  }
  return std::nullopt;
}

}  // namespace gpurota::daemon
