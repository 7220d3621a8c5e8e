#include "daemon/leases/gpu_rooms.h"

#include "base/text.h"
#include "daemon/gpus/gpu_settings.h"
#include "daemon/leases/lease_manager.h"

#include <fmt/format.h>

#include <algorithm>

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

std::optional<MovableFillers::Stay> GpuRooms::stay_of(LeaseId lease) const {
  return fillers_ ? fillers_->stay_of(lease) : std::nullopt;
}

std::vector<lease::GpuRoom> GpuRooms::list() const {
  std::vector<lease::GpuRoom> rooms;
  for (const GpuEntry& gpu : parts_.gpus.entries()) {
    lease::GpuRoom room;
    room.info = gpu.info;
    const ports::StoredGpuState& state = parts_.states.of(gpu.info.uuid);
    const GpuSettings settings = settings_of(gpu.info, parts_.config.turns, state);
    room.capacity = settings.capacity;
    room.swap_capacity = settings.turn_capacity;
    const TurnNeeds::Need need = parts_.turns.need(gpu.info.uuid);
    room.swap_needed = need.most;
    room.swap_wired = need.wired;
    const GpuStates::Unreserved& unreserved = parts_.states.unreserved(gpu.info.uuid);
    room.unreserved_use = unreserved.all;
    room.in_unreserved_use = room.unreserved_use > parts_.config.unreserved_threshold;
    room.hidden = unreserved.beside();
    room.is_freeing = unreserved.hidden.is_leaving;
    room.context_cost = context_cost(parts_.grants, parts_.gpus, gpu.info);
    room.unreserved_by = unreserved.by_user;
    room.idle_since = state.idle_since;
    room.draining = state.draining;
    room.drain_reason = state.drain_reason;
    room.error = gpu.sample.error;
    for (const auto& [id, entry] : parts_.leases.entries()) {
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
void GpuRooms::add_filler(lease::GpuRoom& room, const LeaseEntry& entry) const {
  const auto stay = stay_of(entry.lease.id);
  const bool out = stay && stay->moved_out;
  ++room.leases;
  room.exclusive |= !out;
  room.reserved += out ? stay->stays : room.capacity;
  room.holders += fmt::format("{}{} ({}, a filler{})", room.holders.empty() ? "" : ", ",
                              display_text(parts_.processes.user_name(entry.lease.uid), 32),
                              to_string(entry.lease.id), out ? " in host memory" : "");
}

std::vector<lease::Occupant> GpuRooms::occupants() const {
  const bool keeps = parts_.config.expired_reservation == config::Expired::kKeep;
  std::vector<lease::Occupant> occupants;
  for (const auto& [id, entry] : parts_.leases.entries()) {
    lease::Occupant occupant;
    occupant.id = id;
    occupant.kind = entry.lease.kind;
    occupant.user = parts_.processes.user_name(entry.lease.uid);
    occupant.gpus = entry.lease.gpus;
    occupant.expired = entry.lease.state == LeaseState::kExpired && keeps;
    if (!occupant.expired) occupant.ends = entry.lease.ends;
    occupant.ending = entry.cause.has_value();
    if (entry.lease.kind == LeaseKind::kFiller) {
      if (const auto stay = stay_of(id)) {
        occupant.stays = stay->stays;
        occupant.moved_out = stay->moved_out;
      }
    }
    occupants.push_back(std::move(occupant));
  }
  return occupants;
}

}  // namespace gpurota::daemon
