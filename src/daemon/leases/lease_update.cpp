#include "daemon/leases/lease_update.h"

#include "base/log.h"
#include "base/text.h"
#include "core/compute_share.h"
#include "core/local_time.h"
#include "daemon/leases/turn_wishes.h"
#include "daemon/leases/user_allowance.h"
#include "lease/bookings.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::daemon {
namespace {

Result<void> change_limit(LeaseGpu& gpu, const lease::GpuRoom& room, const SizeSpec& memory,
                          const std::string& name) {
  const Bytes limit = memory.of(room.info.memory);
  const Bytes others = room.unreserved_use + room.hidden + room.machine_use;
  const Bytes most = gpu.swap
                         ? room.swap_capacity - room.reserved - others
                         : room.capacity - (room.reserved - *gpu.limit) - room.swap_needed - others;
  if (limit > most && limit > *gpu.limit) {
    return fail(Code::kLimit,
                fmt::format("{} is more than GPU {} has left: at most {} is available",
                            to_string(limit), name, to_string(most)));
  }
  if (limit < *gpu.limit) gpu.highest_limit = std::max(gpu.highest_limit, *gpu.limit);
  gpu.limit = limit;
  if (gpu.soft_limit && *gpu.soft_limit > limit) gpu.soft_limit = limit;
  return {};
}

Result<void> change_latency(Lease& lease, LatencyClass latency) {
  if (!can_have(lease, latency)) {
    return fail(Code::kInvalid,
                to_string(lease.id) +
                    " cannot be interactive: only a lease that shares its GPUs can, made with "
                    "--memory or --swap, and no filler");
  }
  lease.latency = latency;
  return {};
}

Result<void> change_soft_limit(LeaseGpu& gpu, const lease::GpuRoom& room, const SizeSpec& soft) {
  gpu.soft_limit = soft.of(room.info.memory);
  if (*gpu.soft_limit <= *gpu.limit) return {};
  return fail(Code::kInvalid, fmt::format("the soft limit {} is above the limit {}",
                                          to_string(*gpu.soft_limit), to_string(*gpu.limit)));
}

}  // namespace

void set_leaving(const LeaseTables& tables, LeaseManager& leases, LeaseId id,
                 std::optional<WallTime> when) {
  const LeaseEntry* const entry = tables.find(id);
  if (!entry || entry->cause || entry->lease.leaves == when) return;
  Lease changed = entry->lease;
  changed.leaves = when;
  // The lease has no end now. If it gets one later, its programs are warned again.
  if (!when && !changed.ends) changed.warned = false;
  if (auto stored = leases.change(std::move(changed)); !stored) {
    log::error("cannot store by when a lease has to leave, ignoring",
               {{"lease", to_string(id)}, {"error", stored.error().message}});
  }
}

Result<void> LeaseUpdates::change_gpus(const UpdateRequest& request, Lease& lease) const {
  if (!request.memory && !request.soft_limit) return {};
  if (lease.exclusive()) {
    return fail(Code::kInvalid,
                to_string(lease.id) + " has its GPUs exclusively: there is no limit to change");
  }
  if (request.memory && !lease.oversize().is_zero()) {
    return fail(Code::kInvalid,
                to_string(lease.id) +
                    " is oversize: its limit cannot change, since host memory is reserved for it");
  }
  if (request.memory && is_off(lease.park)) {
    return fail(Code::kInvalid, fmt::format("{0} is parked: its limit can change when it is back "
                                            "on its GPU ('gpurota unpark {0}')",
                                            to_string(lease.id)));
  }
  if (request.soft_limit) GPUROTA_TRY(check_soft_limit(parts_.config.soft_limit, lease.swap()));
  const std::vector<lease::GpuRoom> now = parts_.rooms.list();
  for (LeaseGpu& gpu : lease.gpus) {
    const auto room = std::find_if(
        now.begin(), now.end(), [&](const lease::GpuRoom& r) { return r.info.uuid == gpu.uuid; });
    if (room == now.end()) continue;
    if (request.memory) {
      GPUROTA_TRY(change_limit(gpu, *room, *request.memory, lease::name_of(*room, now)));
    }
    if (request.soft_limit) GPUROTA_TRY(change_soft_limit(gpu, *room, *request.soft_limit));
  }
  return {};
}

// After the change of the latency.
Result<void> LeaseUpdates::change_compute(const UpdateRequest& request, Lease& lease) const {
  if (!request.compute && !request.latency) return {};
  const ComputeShare before = lease.compute();
  const ComputeShare share = request.compute.value_or(before);
  GPUROTA_TRY(check_compute(lease, share));
  if (share == before) return {};
  if (is_off(lease.park)) {
    return fail(Code::kInvalid, fmt::format("{0} is parked: its share can change when it is back "
                                            "on its GPU ('gpurota unpark {0}')",
                                            to_string(lease.id)));
  }
  const std::vector<lease::GpuRoom> now = parts_.rooms.list();
  for (LeaseGpu& gpu : lease.gpus) {
    const auto room = std::find_if(
        now.begin(), now.end(), [&](const lease::GpuRoom& r) { return r.info.uuid == gpu.uuid; });
    const int others = room != now.end() ? room->compute_promised - before.least : 0;
    if (share.least > before.least && share.least + others > kMostComputeShare) {
      return fail(Code::kLimit,
                  fmt::format("{} % is more than GPU {} has left of its compute time: at most {} % "
                              "is available",
                              share.least, lease::name_of(*room, now), kMostComputeShare - others));
    }
    gpu.compute = share;
  }
  return {};
}

Result<void> LeaseUpdates::change_turns(const UpdateRequest& request, Lease& lease) const {
  if (request.quantum) {
    if (!lease.swap()) {
      return fail(
          Code::kInvalid,
          to_string(lease.id) + " takes no turns: only leases made with --swap have a quantum");
    }
    lease.quantum = request.quantum;
  }
  if (!request.priority) return {};
  // A user who lowers a priority that an administrator has given may stay above the user's own
  // limit.
  const UserLimits limits = parts_.allowances.limits_of(lease.uid);
  const int most = std::max(limits.priority.value_or(0), lease.priority);
  if (*request.priority > most && !request.beyond_limits) {
    return fail(Code::kLimit,
                fmt::format("the site allows you priorities up to {}, {} was asked for: ask for "
                            "less, or ask your administrator",
                            most, *request.priority));
  }
  lease.priority = *request.priority;
  return {};
}

// A booking is a promise: nobody, administrators included, gets more at its cost.
Result<void> LeaseUpdates::check_bookings(const Lease& before, const Lease& changed,
                                          bool beyond_limits) const {
  bool more = before.ends && changed.ends && *changed.ends > *before.ends;
  for (std::size_t i = 0; i < before.gpus.size(); ++i) {
    more |= before.gpus[i].limit && *changed.gpus[i].limit > *before.gpus[i].limit;
    more |= changed.gpus[i].compute.least > before.gpus[i].compute.least;
  }
  const auto booked = parts_.rooms.booked();
  if (!more || booked.empty()) return {};
  const std::vector<lease::Request> nobody;
  const auto rooms = parts_.rooms.list();
  auto others = parts_.rooms.occupants();
  lease::Occupant own;
  for (const lease::Occupant& each : others) {
    if (each.id == before.id) own = each;
  }
  std::erase_if(others, [&](const auto& each) { return each.id == before.id; });
  own.gpus = changed.gpus;
  own.ends = changed.ends;
  own.leaves_for_bookings = own.leaves_for_bookings && !changed.ends;
  const WallTime now = parts_.wall_clock();
  // The user's own bookings count against the user's limit.
  const int most = beyond_limits ? kMostComputeShare
                                 : most_compute(parts_.allowances.limits_of(changed.uid),
                                                changed.kind, changed.compute().least);
  const lease::Booked* const first = lease::in_the_way_of(
      {nobody, rooms, others, parts_.rooms.topology(), booked}, own, now, most);
  if (!first) return {};
  const auto left = std::chrono::floor<std::chrono::minutes>(first->from - now).count();
  return fail(Code::kLimit, fmt::format("{} has booked a GPU of {} from {} on ({}): {}",
                                        display_text(first->user, 32), to_string(before.id),
                                        local_time_text(first->from, now), to_string(first->id),
                                        left > 0 ? fmt::format("ask for {} min at most", left)
                                                 : std::string("it can have no more")));
}

Result<void> LeaseUpdates::update(LeaseId id, const UpdateRequest& request) const {
  const LeaseEntry* const entry = parts_.tables.find(id);
  if (!entry || entry->cause) return fail(Code::kGone, to_string(id) + " has ended");
  Lease changed = entry->lease;
  GPUROTA_TRY(change_gpus(request, changed));
  GPUROTA_TRY(change_turns(request, changed));
  if (request.latency) GPUROTA_TRY(change_latency(changed, *request.latency));
  GPUROTA_TRY(change_compute(request, changed));
  if (request.note) changed.note = *request.note;
  if (request.as_name) changed.as_name = *request.as_name;
  if (request.warning) {
    changed.warning = *request.warning;
    changed.warned = false;
  }
  if (request.lasts) {
    changed.ends = parts_.wall_clock() + *request.lasts;
    if (changed.state == LeaseState::kExpired) changed.state = LeaseState::kActive;
  }
  GPUROTA_TRY(check_bookings(entry->lease, changed, request.beyond_limits));
  if (!request.beyond_limits) {
    GPUROTA_TRY(parts_.allowances.check_more(entry->lease, changed));
  }
  return parts_.leases.change(std::move(changed), request.by);
}

}  // namespace gpurota::daemon
