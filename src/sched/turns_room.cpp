// Whether a lease could have room for all its memory, and what is in the way if not.
#include "sched/turns.h"

#include <algorithm>

namespace gpurota::sched {

bool Turns::answers(const TenantState& tenant) { return tenant.reachable && !tenant.dead; }

bool Turns::can_give(const TenantState& tenant) const {
  return answers(tenant) && tenant.retry_at <= now_;
}

// Whether it could run if it had the turn.
bool Turns::eligible(const LeaseState& lease) const { return hindrance(lease) == Wait::kNothing; }

// All its processes have to answer, and what it misses must find room.
Wait Turns::hindrance(const LeaseState& lease) const {
  if (lease.aside) return Wait::kAside;
  if (lease.retry_at > now_) return Wait::kRetry;
  for (TenantId id : lease.tenants) {
    const TenantState& tenant = tenants_.at(id);
    if (!tenant.reachable && !tenant.dead) return Wait::kStopped;
  }
  for (GpuSlot gpu : lease.gpus) {
    if (!takes_turns(lease, gpu) && !memory_.is_lost(gpu)) continue;
    const Wait found = hindrance(lease, gpu);
    if (found != Wait::kNothing) return found;
  }
  return Wait::kNothing;
}

// Who has all its memory there needs no room, whatever has come beside it.
Wait Turns::hindrance(const LeaseState& lease, GpuSlot gpu) const {
  const Holding own = memory_.of_lease(lease.terms.id, gpu);
  if ((own.out() + own.unbacked + own.wired_unbacked).is_zero()) return Wait::kNothing;
  if (memory_.is_lost(gpu)) return Wait::kLost;
  Bytes fixed = memory_.wired(gpu);
  Bytes stays;
  bool stopped = false;
  for (const auto& [id, tenant] : tenants_) {
    const Holding& h = memory_.at(id, gpu);
    if (tenant.dead) fixed += h.lingering;  // who lives is measured at once
    const Bytes here = h.resident + h.coming;
    if (tenant.lease == lease.terms.id || can_give(tenant) || here.is_zero()) continue;
    stays += here;
    stopped = stopped || !answers(tenant);
  }
  const Bytes capacity = memory_.capacity(gpu);
  if (own.movable + fixed > capacity) return Wait::kNoRoom;
  if (own.movable + fixed + stays > capacity) {
    return stopped ? Wait::kHeldByStopped : Wait::kRetry;
  }
  return is_host_full(own, gpu) ? Wait::kNoHost : Wait::kNothing;
}

// Blocks move whole: what is ordered out may be up to one more.
Bytes Turns::may_go_out() const { return memory_.host_for_moves() - settings_.piece; }

// What others hold would have to go out for it, and host memory has no room for that, nor will have as long as nothing
// else moves. Others may have grown without asking since it was admitted.
bool Turns::is_host_full(const Holding& own, GpuSlot gpu) const {
  const Bytes missing = own.missing();
  const Bytes needed = missing + own.unbacked + own.wired_unbacked;
  const Bytes free = memory_.free(gpu);
  if (needed <= free) return false;
  if (!missing.is_zero() && free >= std::min(missing, settings_.piece)) return false;
  for (const auto& [id, tenant] : tenants_) {
    const Holding& h = memory_.at(id, gpu);
    if (!(h.coming + on_its_way_out(tenant, h)).is_zero()) return false;
  }
  return may_go_out() < std::min(needed - free, settings_.piece);
}

// For all of it, to have its turn, or beside the turn for what it has asked for.
bool Turns::waits_for_memory(const LeaseState& lease) const {
  if (lease.phase == Phase::kApart) return wants(lease);
  return std::any_of(lease.gpus.begin(), lease.gpus.end(),
                     [&](GpuSlot gpu) { return waits_for_room(lease, gpu); });
}

// A tenant that has just come or gone is soon known for what it is.
void Turns::watch_room(LeaseState& lease, Wait obstacle) {
  const bool too_large = lease.phase == Phase::kApart && obstacle == Wait::kNoRoom;
  if (!too_large) {
    lease.no_room_since.reset();
    lease.no_room_reported = false;
    return;
  }
  if (!lease.no_room_since) lease.no_room_since = now_;
  if (lease.no_room_reported || now_ < *lease.no_room_since + kNoRoomLasts) return;
  lease.no_room_reported = true;
  report(Trouble::kNoRoom, lease.terms.id, {});
}

std::optional<TimePoint> Turns::held_up_until(const LeaseState& lease) const {
  if (!lease.held_up_since || settings_.stopped_deadline == Duration::zero()) return std::nullopt;
  return *lease.held_up_since + settings_.stopped_deadline;
}

// Nobody can take memory from a process that does not answer: it comes back with the end of its lease. One lease at a time ends, as
// that may be enough.
void Turns::watch_stopped(LeaseState& lease, Wait obstacle) {
  if (obstacle != Wait::kHeldByStopped) return lease.held_up_since.reset();
  if (!lease.held_up_since) lease.held_up_since = now_;
  const auto until = held_up_until(lease);
  if (!until || now_ < *until) return;
  lease.held_up_since = now_;
  const TenantId most = has_most_of(lease);
  if (most != TenantId()) report(Trouble::kUnreachable, tenants_.at(most).lease, most, true);
}

// Of those that do not answer, who has most of what it needs. 0: nobody.
TenantId Turns::has_most_of(const LeaseState& lease) const {
  TenantId most{};
  Bytes largest;
  for (const auto& [id, tenant] : tenants_) {
    if (tenant.lease == lease.terms.id || tenant.reachable || tenant.dead) continue;
    for (GpuSlot gpu : lease.gpus) {
      const Holding& h = memory_.at(id, gpu);
      if (h.resident + h.coming <= largest) continue;
      largest = h.resident + h.coming;
      most = id;
    }
  }
  return most;
}

}  // namespace gpurota::sched
