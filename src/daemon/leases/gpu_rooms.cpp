#include "daemon/leases/gpu_rooms.h"

#include "base/text.h"
#include "daemon/gpus/gpu_settings.h"
#include "daemon/gpus/parked_room.h"
#include "daemon/leases/lease_tables.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::daemon {
namespace {

// The memory of a context as measured on this GPU, or else on another GPU of the same model; zero:
// never measured.
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

bool leaves_for_bookings(const Lease& lease, const config::Config& config) {
  return !lease.ends && lease.kind != LeaseKind::kFiller && lease.kind != LeaseKind::kReservation &&
         config::unbooked_for(config.bookings).has_value();
}

std::vector<lease::GpuRoom> GpuRooms::list() const {
  return list([](LeaseId) { return true; }, true);
}

std::vector<lease::GpuRoom> GpuRooms::list_with(const std::vector<LeaseId>& only) const {
  return list([&](LeaseId id) { return std::find(only.begin(), only.end(), id) != only.end(); },
              false);
}

GpuRooms::Machine GpuRooms::machine_without(const std::set<LeaseId>& leases) const {
  Machine machine{list([&](LeaseId id) { return !leases.contains(id); }, true), occupants(),
                  booked(), topology_};
  std::erase_if(machine.leases,
                [&](const lease::Occupant& each) { return leases.contains(each.id); });
  return machine;
}

std::vector<lease::GpuRoom> GpuRooms::list(const Counts& counts, bool others) const {
  std::vector<lease::GpuRoom> rooms;
  for (const GpuEntry& gpu : parts_.gpus.entries()) {
    lease::GpuRoom room;
    room.info = gpu.info;
    const ports::StoredGpuState& state = parts_.states.of(gpu.info.uuid);
    const GpuSettings settings = settings_of(gpu.info, parts_.config, state);
    room.capacity = settings.capacity;
    room.swap_capacity = settings.turn_capacity;
    room.context_cost = context_cost(parts_.grants, parts_.gpus, gpu.info);
    if (others) add_use(room, counts);
    if (others && gpu.info.unified)
      room.machine_use = gpu.machine_use + promised_elsewhere(gpu.info);
    room.idle_since = state.idle_since;
    room.draining = state.draining;
    room.drain_reason = state.drain_reason;
    room.error = gpu.sample.error;
    for (const auto& [id, entry] : parts_.tables.leases) {
      const LeaseGpu* const share = entry.lease.find_gpu(gpu.info.uuid);
      if (!share || !counts(id)) continue;
      if (counts_on(entry.lease, gpu.info)) add_lease(room, entry, *share);
    }
    rooms.push_back(std::move(room));
  }
  return rooms;
}

Bytes GpuRooms::turn_capacity(const GpuEntry& gpu) const {
  return settings_of(gpu.info, parts_.config, parts_.states.of(gpu.info.uuid)).turn_capacity;
}

Bytes GpuRooms::promised_elsewhere(const GpuInfo& gpu) const {
  Bytes promised;
  for (const GpuEntry& other : parts_.gpus.entries()) {
    if (!other.info.unified || other.info.uuid == gpu.uuid) continue;
    for (const auto& [id, entry] : parts_.tables.leases) {
      const LeaseGpu* const share = entry.lease.find_gpu(other.info.uuid);
      if (share && share->limit) promised += *share->limit;
    }
  }
  return promised;
}

lease::Booked GpuRooms::booked_of(const BookingEntry& entry) const {
  const bool lasts = parts_.config.expired_reservation == config::Expired::kKeep;
  lease::Booked booked;
  booked.id = entry.id;
  booked.user = parts_.processes.user_name(entry.asked.uid);
  booked.from = entry.begins;
  booked.until = lasts ? lease::kNever : entry.ends();
  booked.uid = entry.asked.uid;
  booked.placed = entry.placed;
  for (const GpuUuid& uuid : entry.kept) {
    LeaseGpu& share = booked.gpus.emplace_back();
    share.uuid = uuid;
    const GpuEntry* const gpu = parts_.gpus.find(uuid);
    const auto& memory = entry.asked.placement.memory;
    if (memory && gpu) share.limit = memory->of(gpu->info.memory);
    share.compute = entry.asked.placement.compute;
  }
  return booked;
}

std::vector<lease::Booked> GpuRooms::booked(std::optional<RequestId> without) const {
  std::vector<lease::Booked> all;
  for (const BookingEntry& entry : parts_.tables.bookings) {
    if (entry.id != without) all.push_back(booked_of(entry));
  }
  return all;
}

// Adds the memory of leases that take turns there, and of programs without a lease.
void GpuRooms::add_use(lease::GpuRoom& room, const Counts& counts) const {
  const TurnNeeds::Need need = parts_.turns.need(room.info.uuid, counts);
  room.swap_needed = need.most;
  room.swap_wired = need.wired;
  const GpuStates::Unreserved& unreserved = parts_.states.unreserved(room.info.uuid);
  room.unreserved_use = unreserved.all;
  room.in_unreserved_use = room.unreserved_use > parts_.config.unreserved_threshold;
  room.unreserved_by = unreserved.by_user;
  room.hidden = unreserved.beside();
  room.is_freeing = unreserved.hidden.is_leaving;
}

void GpuRooms::add_lease(lease::GpuRoom& room, const LeaseEntry& entry,
                         const LeaseGpu& share) const {
  const LeaseId id = entry.lease.id;
  if (share.swap && entry.lease.kind == LeaseKind::kFiller) return add_filler(room, entry);
  ++room.leases;
  room.exclusive |= !share.limit;
  room.compute_promised += share.compute.least;
  if (share.swap) {
    ++room.swap_leases;
    room.swap_needed = std::max(room.swap_needed, share.limit.value_or(Bytes()));
  } else {
    room.reserved += share.limit.value_or(room.capacity);
    const auto account = parts_.grants.find(id, room.info.uuid);
    if (account && share.limit) {
      room.above_limits += account.if_there()->charged() - *share.limit;
    }
  }
  room.holders += fmt::format(
      "{}{} ({}{}{})", room.holders.empty() ? "" : ", ",
      display_text(parts_.processes.user_name(entry.lease.uid), 32), to_string(id),
      !share.limit ? ""
      : share.swap ? ", takes turns"
                   : ", " + to_string(*share.limit),
      share.compute.least != 0 ? fmt::format(", {} % of its compute time", share.compute.least)
                               : "");
}

// A filler has its GPU to itself until it is moved out; from then on only the memory that stays
// counts.
void GpuRooms::add_filler(lease::GpuRoom& room, const LeaseEntry& entry) const {
  const auto stay = parts_.stay_of(entry.lease.id);
  const bool out = stay && stay->moved_out;
  ++room.leases;
  room.exclusive |= !out;
  room.reserved += out ? stay->stays : room.capacity;
  room.holders += fmt::format("{}{} ({}, a filler{})", room.holders.empty() ? "" : ", ",
                              display_text(parts_.processes.user_name(entry.lease.uid), 32),
                              to_string(entry.lease.id), out ? " in host memory" : "");
}

std::vector<LeaseGpu> GpuRooms::shares_of(const Lease& lease) const {
  std::vector<LeaseGpu> shares = lease.gpus;
  std::erase_if(shares, [&](const LeaseGpu& share) {
    const GpuEntry* const gpu = parts_.gpus.find(share.uuid);
    return gpu ? !counts_on(lease, gpu->info) : !counts_on_gpus(lease.park);
  });
  return shares;
}

std::vector<lease::Occupant> GpuRooms::occupants() const {
  const bool keeps = parts_.config.expired_reservation == config::Expired::kKeep;
  std::vector<lease::Occupant> occupants;
  for (const auto& [id, entry] : parts_.tables.leases) {
    lease::Occupant occupant;
    occupant.id = id;
    occupant.kind = entry.lease.kind;
    occupant.user = parts_.processes.user_name(entry.lease.uid);
    occupant.gpus = shares_of(entry.lease);
    if (occupant.gpus.empty()) continue;
    occupant.expired = entry.lease.state == LeaseState::kExpired && keeps;
    if (!occupant.expired) occupant.ends = entry.lease.ends;
    occupant.ending = entry.cause.has_value();
    occupant.uid = entry.lease.uid;
    occupant.since = entry.lease.since;
    occupant.leaves_for_bookings = leaves_for_bookings(entry.lease, parts_.config);
    if (entry.lease.kind == LeaseKind::kFiller) {
      if (const auto stay = parts_.stay_of(id)) {
        occupant.stays = stay->stays;
        occupant.moved_out = stay->moved_out;
      }
    }
    occupants.push_back(std::move(occupant));
  }
  return occupants;
}

}  // namespace gpurota::daemon
