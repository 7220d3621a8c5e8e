#include "lease/obstacles.h"

#include "lease/planner.h"

#include <algorithm>

namespace gpurota::lease {
namespace {

template <class Shares>
bool is_among(const Shares& shares, const GpuPlan& gpu) {
  return std::any_of(shares.begin(), shares.end(),
                     [&gpu](const LeaseGpu& share) { return share.uuid == gpu.room().info.uuid; });
}

bool fits_at(const Request& request, const GpuPlan& gpu, WallTime at, GpuPlan::Against against) {
  return gpu.fits(request, at, at + kAnyMoment, against);
}

}  // namespace

const Occupant* lease_in_the_way(const Request& request, const GpuPlan& gpu,
                                 GpuPlan::Against against, std::span<const Occupant> leases,
                                 WallTime from, WallTime now) {
  // If only the compute time is lacking, only leases with a share of it are in the way.
  Request any_time = request;
  any_time.placement.compute.least = 0;
  const bool lacks_time =
      request.placement.compute.least != 0 && fits_at(any_time, gpu, from, against);
  // If only the limit of the user is in the way, only leases of that user are.
  any_time = request;
  any_time.most_compute = kMostComputeShare;
  const bool lacks_limit = lacks_time && fits_at(any_time, gpu, from, against);
  std::vector<std::pair<WallTime, const Occupant*>> there;
  for (const Occupant& lease : leases) {
    if (lease.kind == LeaseKind::kFiller || !is_among(lease.gpus, gpu)) continue;
    if (lacks_time && lease.gpus.front().compute.least == 0) continue;
    if (lacks_limit && lease.uid != request.uid) continue;
    const WallTime end = end_of(lease, now);
    if (end > from) there.emplace_back(end, &lease);
  }
  if (there.empty()) return nullptr;
  std::stable_sort(there.begin(), there.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [end, lease] : there) {
    if (end != kNever && fits_at(request, gpu, end, against)) return lease;
  }
  // Return the first of several leases without a known end.
  const WallTime last = there.back().first;
  return std::find_if(there.begin(), there.end(),
                      [last](const auto& each) { return each.first == last; })
      ->second;
}

std::optional<FreeUntil> free_until(const Request& request, GpuPlan::Against against,
                                    std::span<GpuPlan* const> gpus, const QueueView& view,
                                    const KeptFor& kept_for, WallTime now) {
  std::vector<std::pair<WallTime, const GpuPlan*>> free;
  for (const GpuPlan* const gpu : gpus) {
    if (const auto until = gpu->free_until(request, against)) free.emplace_back(*until, gpu);
  }
  const std::size_t wanted = wanted_gpus(request);
  if (wanted == 0 || free.size() < wanted) return std::nullopt;
  std::stable_sort(free.begin(), free.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  const auto [at, gpu] = free[wanted - 1];
  if (at == kNever) return std::nullopt;
  FreeUntil until{.at = at, .gpu = name_of(gpu->room(), view.rooms)};
  for (const Booked& booked : view.bookings) {
    if (std::max(booked.from, now) != at || !is_among(booked.gpus, *gpu)) continue;
    until.whose = booked.id;
    until.user = booked.user;
    until.booking = true;
    return until;
  }
  const auto kept = kept_for.find(gpu->room().info.uuid);
  if (kept == kept_for.end()) return std::nullopt;
  until.whose = kept->second.first;
  until.user = kept->second.second;
  return until;
}

int free_now(const Request& request, GpuPlan::Against against, std::span<GpuPlan* const> gpus,
             WallTime now) {
  const auto free = std::count_if(gpus.begin(), gpus.end(), [&](const GpuPlan* gpu) {
    return fits_at(request, *gpu, now, against);
  });
  return static_cast<int>(std::min(static_cast<std::size_t>(free), wanted_gpus(request)));
}

std::optional<Crowded> crowded(const Request& request, const GpuPlan& gpu, GpuPlan::Against against,
                               const std::vector<GpuRoom>& rooms, WallTime now) {
  const GpuTimeline::Share share = gpu.size_of(request);
  if (!share.bytes) return std::nullopt;
  const GpuRoom& room = gpu.room();
  const WallTime then = now + kAnyMoment;
  const auto promised = gpu.timeline().taken(now, then, against);
  if (!promised) return std::nullopt;
  Crowded found{.gpu = name_of(room, rooms),
                .capacity = request.placement.swap ? room.swap_capacity : room.capacity,
                .promised = *promised,
                .outside = {},
                .machine = room.machine_use};
  if (found.promised > found.capacity) return found;
  // Outside use is in the way only if the request would fit without it.
  found.outside = found.capacity - capacity_for(request.placement, room);
  const bool fits_without = gpu.timeline().fits(share, now, then, against, found.capacity);
  if (found.outside.is_zero() || !fits_without) return std::nullopt;
  return found;
}

}  // namespace gpurota::lease
