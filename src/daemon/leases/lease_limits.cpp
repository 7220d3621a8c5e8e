// What the site allows a user, asked before a lease is made and before one is given more: part of
// lease_manager.cpp.
#include "daemon/leases/lease_manager.h"
#include "daemon/leases/user_allowance.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::daemon {

lease::Holding LeaseManager::held_by(uid_t uid, const UserLimits& limits) const {
  const bool fillers = parts_.config.filler.count_against_limits;
  const WallTime now = parts_.wall_clock();
  const WallTime from = now - parts_.config.hours_window;
  lease::Holding held = holding_of(uid, entries_, parts_.gpus, now, from, fillers);
  if (parts_.used && limits.hours != UserLimits::kUnlimited) {
    held.gpu_time = parts_.used(uid, from).value_or(held.gpu_time);
  }
  const lease::Holding waiting = parts_.waiting ? parts_.waiting(uid) : lease::Holding();
  held.gpus += waiting.gpus;
  held.memory += waiting.memory;
  held.promised += waiting.promised;
  held.waiting += waiting.waiting;
  return held;
}

Result<void> LeaseManager::check_user_limit(const AcquireRequest& request, bool waits) const {
  const uid_t uid = request.uid;
  // There is at most one on a GPU, and it goes when anybody else needs that.
  const bool fillers = parts_.config.filler.count_against_limits;
  if (request.kind == LeaseKind::kFiller && !fillers) return {};
  const UserLimits limits = parts_.limits_of ? parts_.limits_of(uid) : default_limits();
  const lease::Holding held = held_by(uid, limits);
  const auto count = std::count_if(entries_.begin(), entries_.end(), [&](const auto& e) {
    return e.second.lease.uid == uid && (fillers || e.second.lease.kind != LeaseKind::kFiller);
  });
  if (count + held.waiting >= parts_.config.max_leases_per_user) {
    return fail(Code::kLimit, fmt::format("you have {} leases and requests, the site allows no "
                                          "more: end one with gpurota release",
                                          count + held.waiting));
  }
  lease::Asking asked = asking(request);
  asked.waits = waits;
  return lease::check_allowance(limits, held, asked, parts_.config.hours_window);
}

// Those of fillers come and go by what others do.
Result<void> LeaseManager::count_new(const AcquireRequest& request) const {
  if (!parts_.admit_new || request.kind == LeaseKind::kFiller) return {};
  return parts_.admit_new(request.uid);
}

Result<void> LeaseManager::check_ever_allowed(const AcquireRequest& request) const {
  const UserLimits limits = parts_.limits_of ? parts_.limits_of(request.uid) : default_limits();
  const lease::Asking asked = asking(request);
  const auto window = parts_.config.hours_window;
  if (lease::check_allowance(limits, {}, asked, window)) return {};
  // With what they have in it, as they would hear it.
  return lease::check_allowance(limits, held_by(request.uid, limits), asked, window);
}

lease::Asking LeaseManager::asking(const AcquireRequest& request) const {
  lease::Asking asked = asking_of(request.placement, parts_.gpus);
  asked.priority = request.priority;
  if (request.lasts) asked.duration = std::chrono::ceil<std::chrono::seconds>(*request.lasts);
  return asked;
}

// Only what grows is asked for: what there is stays, whatever the limits are by now.
Result<void> LeaseManager::check_more(const Lease& lease, const Lease& changed) const {
  const bool fillers = parts_.config.filler.count_against_limits;
  if (lease.kind == LeaseKind::kFiller && !fillers) return {};
  const UserLimits limits = parts_.limits_of ? parts_.limits_of(lease.uid) : default_limits();
  const lease::Holding held = held_by(lease.uid, limits);
  UserLimits within;  // what does not grow is not asked about
  lease::Asking asked;
  for (std::size_t i = 0; i < lease.gpus.size(); ++i) {
    const auto before = lease.gpus[i].limit, after = changed.gpus[i].limit;
    if (before && after && *after > *before) asked.memory += *after - *before;
  }
  if (!asked.memory.is_zero()) within.memory = limits.memory;
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
