#include "daemon/leases/allowances.h"

#include "daemon/leases/user_allowance.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::daemon {
namespace {

// Kubernetes bounds what the pods of a node have; this number bounds what their requests cost the
// daemon.
constexpr int kMostPodLeases = 1024;

}  // namespace

lease::Holding Allowances::held_by(uid_t uid, const UserLimits& limits) const {
  const bool fillers = parts_.config.filler.count_against_limits;
  const WallTime now = parts_.wall_clock();
  const WallTime from = now - parts_.config.hours_window;
  lease::Holding held = holding_of(uid, parts_.tables.leases, parts_.gpus, now, from, fillers);
  if (limits.hours != UserLimits::kUnlimited) {
    held.gpu_time = parts_.gpu_time_of(uid, from).value_or(held.gpu_time);
  }
  for (const QueueEntry& entry : parts_.tables.requests) {
    if (entry.asked.uid != uid) continue;
    const lease::Asking asked = asking_of(entry.asked.placement, parts_.gpus);
    held.gpus += asked.gpus;
    held.memory += asked.memory;
    if (entry.asked.lasts) held.promised += gpu_time_of(*entry.asked.lasts, *asked.parts);
    ++held.waiting;
  }
  return held;
}

int Allowances::leases_of(uid_t uid) const {
  const bool fillers = parts_.config.filler.count_against_limits;
  const auto& entries = parts_.tables.leases;
  return static_cast<int>(std::count_if(entries.begin(), entries.end(), [&](const auto& e) {
    const LeaseKind kind = e.second.lease.kind;
    const bool counts = kind != LeaseKind::kPod && (fillers || kind != LeaseKind::kFiller);
    return e.second.lease.uid == uid && counts;
  }));
}

Result<void> Allowances::check_pods() const {
  const auto& entries = parts_.tables.leases;
  const auto pods = std::count_if(entries.begin(), entries.end(), [](const auto& entry) {
    return entry.second.lease.kind == LeaseKind::kPod;
  });
  if (pods < kMostPodLeases) return {};
  return fail(Code::kLimit, fmt::format("pods have {} leases, and there can be no more", pods));
}

Allowances::Standing Allowances::standing_of(uid_t uid) const {
  Standing standing;
  standing.limits = parts_.users.limits_of(uid);
  standing.origins = parts_.users.origins_of(uid);
  standing.held = held_by(uid, standing.limits);
  standing.leases = leases_of(uid) + standing.held.waiting;
  return standing;
}

Result<void> Allowances::check(const AcquireRequest& request, bool waits) const {
  // Kubernetes decides what pods may have, so no user's limits apply.
  if (request.kind == LeaseKind::kPod) return check_pods();
  const uid_t uid = request.uid;
  // Fillers that the site does not count are not limited: a GPU has at most one filler, which
  // leaves when anybody else needs the GPU.
  const bool fillers = parts_.config.filler.count_against_limits;
  if (request.kind == LeaseKind::kFiller && !fillers) return {};
  const UserLimits limits = parts_.users.limits_of(uid);
  const lease::Holding held = held_by(uid, limits);
  const int count = leases_of(uid);
  if (count + held.waiting >= parts_.config.max_leases_per_user) {
    return fail(Code::kLimit, fmt::format("you have {} leases and requests, the site allows no "
                                          "more: end one with gpurota release",
                                          count + held.waiting));
  }
  lease::Asking asked = asking(request);
  asked.waits = waits;
  // Where the site sets no limit, only what is promised on the GPU counts, and the request waits.
  const bool limited = limits.compute.value_or(kMostComputeShare) < kMostComputeShare;
  if (limited && asked.compute != 0) asked.compute_there = compute_for_long(request);
  return lease::check_allowance(limits, held, asked, parts_.config.hours_window);
}

// Leases of fillers are not counted, because the needs of other users decide how often they begin
// and end.
Result<void> Allowances::count_new(const AcquireRequest& request) const {
  if (request.kind == LeaseKind::kFiller || request.kind == LeaseKind::kPod) return {};
  return parts_.budgets.spend_lease(request.uid);
}

Result<void> Allowances::check_ever(const AcquireRequest& request) const {
  const UserLimits limits = parts_.users.limits_of(request.uid);
  const lease::Asking asked = asking(request);
  const auto window = parts_.config.hours_window;
  if (lease::check_allowance(limits, {}, asked, window)) return {};
  // Check again together with what the user has, so that the message says how much the user has.
  return lease::check_allowance(limits, held_by(request.uid, limits), asked, window);
}

Result<void> Allowances::check_booking(const AcquireRequest& request, const std::string& user,
                                       const std::vector<WallTime>& begins) const {
  const auto& bookings = parts_.tables.bookings;
  const auto own = std::count_if(bookings.begin(), bookings.end(), [&](const BookingEntry& each) {
    return each.asked.uid == request.uid;
  });
  const auto ahead = std::chrono::ceil<std::chrono::seconds>(begins.back() - parts_.wall_clock());
  GPUROTA_TRY(
      lease::check_booking(parts_.users.limits_of(request.uid),
                           {static_cast<int>(own), static_cast<int>(begins.size()), ahead}));
  const lease::BookingsAsked asked{request.uid, user, begins,
                                   request.lasts.value_or(std::chrono::milliseconds(0)),
                                   booked_parts(request.placement, parts_.gpus)};
  GPUROTA_TRY(lease::check_booking_bounds(booking_bounds(request.uid), counted_bookings(), asked,
                                          parts_.wall_clock()));
  return check_ever(request);
}

std::vector<lease::BookedTime> Allowances::counted_bookings() const {
  std::vector<lease::BookedTime> booked;
  for (const BookingEntry& entry : parts_.tables.bookings) {
    booked.push_back({entry.asked.uid, entry.begins, entry.ends(),
                      booked_parts(entry.kept, entry.asked.placement.memory, parts_.gpus)});
  }
  for (const auto& [id, past] : parts_.tables.past_bookings) {
    booked.push_back(
        {past.uid, past.from, past.until, static_cast<double>(past.gpu_millionths) / 1e6});
  }
  std::erase_if(booked, [&](const auto& each) { return parts_.users.is_administrator(each.uid); });
  return booked;
}

lease::BookingBounds Allowances::booking_bounds(uid_t uid) const {
  lease::BookingBounds bounds;
  bounds.gpus = machine_parts(parts_.gpus);
  if (parts_.users.is_administrator(uid)) return bounds;
  bounds.longest = parts_.config.bookings.longest;
  bounds.user_percent = parts_.config.bookings.user_share_percent;
  bounds.all_percent = parts_.config.bookings.all_share_percent;
  return bounds;
}

lease::Asking Allowances::asking(const AcquireRequest& request) const {
  lease::Asking asked = asking_of(request.placement, parts_.gpus);
  asked.priority = request.priority;
  asked.interactive = request.latency == LatencyClass::kInteractive;
  asked.compute = request.placement.compute.least;
  if (request.lasts) asked.duration = std::chrono::ceil<std::chrono::seconds>(*request.lasts);
  return asked;
}

std::map<GpuUuid, int> Allowances::compute_of(
    uid_t uid, const std::function<bool(const LeaseEntry&)>& counts) const {
  std::map<GpuUuid, int> sums;
  for (const auto& [id, entry] : parts_.tables.leases) {
    const Lease& lease = entry.lease;
    if (lease.uid != uid || lease.gpus.empty() || !counts_on_gpus(lease.park)) continue;
    if (counts(entry)) sums[lease.gpus.front().uuid] += lease.compute().least;
  }
  return sums;
}

// The part of the lease's GPU's compute time that other leases of its user are promised.
int Allowances::compute_beside(const Lease& lease) const {
  const auto sums =
      compute_of(lease.uid, [&](const LeaseEntry& other) { return other.lease.id != lease.id; });
  int sum = 0;
  for (const LeaseGpu& gpu : lease.gpus) {
    const auto there = sums.find(gpu.uuid);
    if (there != sums.end()) sum += there->second;
  }
  return sum;
}

int Allowances::compute_for_long(const AcquireRequest& request) const {
  auto sums = compute_of(request.uid, [](const LeaseEntry& entry) {
    return entry.lease.kind != LeaseKind::kPod && !entry.lease.ends && !entry.cause;
  });
  for (const GpuEntry& gpu : parts_.gpus.entries()) sums.try_emplace(gpu.info.uuid, 0);
  const auto& named = request.placement.gpus;
  std::optional<int> least;
  for (const auto& [uuid, sum] : sums) {
    if (!named.empty() && std::find(named.begin(), named.end(), uuid) == named.end()) continue;
    least = std::min(least.value_or(sum), sum);
  }
  return least.value_or(0);
}

// Only growth is checked: the lease keeps what it has, whatever the limits are by now.
Result<void> Allowances::check_more(const Lease& lease, const Lease& changed) const {
  const bool fillers = parts_.config.filler.count_against_limits;
  if (lease.kind == LeaseKind::kFiller && !fillers) return {};
  const UserLimits limits = parts_.users.limits_of(lease.uid);
  const lease::Holding held = held_by(lease.uid, limits);
  UserLimits within;  // only the limits of what grows are set
  lease::Asking asked;
  for (std::size_t i = 0; i < lease.gpus.size(); ++i) {
    const auto before = lease.gpus[i].limit, after = changed.gpus[i].limit;
    if (before && after && *after > *before) asked.memory += *after - *before;
  }
  if (!asked.memory.is_zero()) within.memory = limits.memory;
  if (changed.latency != lease.latency) {
    asked.interactive = changed.latency == LatencyClass::kInteractive;
    within.interactive = limits.interactive;
  }
  if (changed.compute().least > lease.compute().least) {
    asked.compute = changed.compute().least;
    asked.compute_there = compute_beside(lease);
    within.compute = limits.compute;
  }
  if (changed.ends && lease.ends && *changed.ends > *lease.ends) {
    const WallTime from = std::max(*lease.ends, parts_.wall_clock());
    const auto more = std::max(*changed.ends - from, WallTime::duration(0));
    asked.duration = std::chrono::ceil<std::chrono::seconds>(*changed.ends - lease.since);
    asked.added = std::chrono::ceil<std::chrono::seconds>(more);
    asked.parts = parts_of(changed, parts_.gpus);
    within.duration = limits.duration;
    within.hours = limits.hours;
  }
  return lease::check_allowance(lease::with_all_else_unlimited(within), held, asked,
                                parts_.config.hours_window);
}

}  // namespace gpurota::daemon
