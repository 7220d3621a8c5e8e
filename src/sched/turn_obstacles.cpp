#include "sched/turn_obstacles.h"

#include <algorithm>

namespace gpurota::sched {

// Who holds what this one has not left yet counts too.
bool TurnObstacles::waits_for(const LeaseState& other, const LeaseState& holder) const {
  if (other.terms.id == holder.terms.id || !table_.conflict(other, holder)) return false;
  if (other.phase == Phase::kEntering || other.phase == Phase::kHolding) return true;
  if (other.phase == Phase::kLeaving) {
    return std::any_of(other.gpus.begin(), other.gpus.end(),
                       [&](GpuSlot gpu) { return table_.waits_for_room(other, gpu); });
  }
  return other.phase == Phase::kApart && table_.wants(other) && eligible(other);
}

bool TurnObstacles::somebody_waits_for(const LeaseState& holder) const {
  return std::any_of(table_.leases.begin(), table_.leases.end(),
                     [&](const auto& entry) { return waits_for(entry.second, holder); });
}

bool TurnObstacles::eligible(const LeaseState& lease) const {
  return hindrance(lease) == Wait::kNothing;
}

// All its processes have to answer, and what it misses must find room.
Wait TurnObstacles::hindrance(const LeaseState& lease) const {
  if (lease.aside) return Wait::kAside;
  if (lease.retry_at > table_.now) return Wait::kRetry;
  for (TenantId id : lease.tenants) {
    const TenantState& tenant = table_.tenants.at(id);
    if (!tenant.reachable && !tenant.dead) return Wait::kStopped;
  }
  for (GpuSlot gpu : lease.gpus) {
    if (!table_.takes_turns(lease, gpu) && !table_.memory.is_lost(gpu)) continue;
    const Wait found = hindrance(lease, gpu);
    if (found != Wait::kNothing) return found;
  }
  return Wait::kNothing;
}

// Who has all its memory there needs no room, whatever has come beside it.
Wait TurnObstacles::hindrance(const LeaseState& lease, GpuSlot gpu) const {
  const Holding own = table_.memory.of_lease(lease.terms.id, gpu);
  if ((own.out() + own.unbacked + own.wired_unbacked).is_zero()) return Wait::kNothing;
  if (table_.memory.is_lost(gpu)) return Wait::kLost;
  Bytes fixed = table_.memory.wired(gpu);
  Bytes stays;
  bool stopped = false;
  for (const auto& [id, tenant] : table_.tenants) {
    const Holding& h = table_.memory.at(id, gpu);
    if (tenant.dead) fixed += h.lingering;  // who lives is measured at once
    const Bytes here = h.resident + h.coming;
    if (tenant.lease == lease.terms.id || table_.can_give(tenant) || here.is_zero()) continue;
    stays += here;
    stopped = stopped || !tenant.can_answer();
  }
  const Bytes capacity = table_.memory.capacity(gpu);
  if (own.movable + fixed > capacity) return Wait::kNoRoom;
  if (own.movable + fixed + stays > capacity) {
    return stopped ? Wait::kHeldByStopped : Wait::kRetry;
  }
  return is_host_full(own, gpu) ? Wait::kNoHost : Wait::kNothing;
}

// What others hold would have to go out for it, and host memory has no room for that, nor will have as long as nothing
// else moves. Others may have grown without asking since it was admitted.
bool TurnObstacles::is_host_full(const Holding& own, GpuSlot gpu) const {
  const Bytes missing = own.missing();
  const Bytes needed = missing + own.unbacked + own.wired_unbacked;
  const Bytes free = table_.memory.free(gpu);
  if (needed <= free) return false;
  if (!missing.is_zero() && free >= std::min(missing, table_.settings.piece)) return false;
  for (const auto& [id, tenant] : table_.tenants) {
    const Holding& h = table_.memory.at(id, gpu);
    if (!(h.coming + on_its_way_out(tenant, h)).is_zero()) return false;
  }
  return table_.may_go_out() < std::min(needed - free, table_.settings.piece);
}

// For all of it, to have its turn, or beside the turn for what it has asked for.
bool TurnObstacles::waits_for_memory(const LeaseState& lease) const {
  if (lease.phase == Phase::kApart) return table_.wants(lease);
  return std::any_of(lease.gpus.begin(), lease.gpus.end(),
                     [&](GpuSlot gpu) { return table_.waits_for_room(lease, gpu); });
}

std::optional<TimePoint> TurnObstacles::held_up_until(const LeaseState& lease) const {
  const Duration bound = table_.settings.stopped_deadline;
  if (!lease.is_held_up || bound == Duration::zero()) return std::nullopt;
  return table_.now + std::max(bound - lease.held_up, Duration::zero());
}

// Of those that do not answer, who has most of what it needs. 0: nobody.
TenantId TurnObstacles::has_most_of(const LeaseState& lease) const {
  TenantId most{};
  Bytes largest;
  for (const auto& [id, tenant] : table_.tenants) {
    if (tenant.lease == lease.terms.id || tenant.reachable || tenant.dead) continue;
    for (GpuSlot gpu : lease.gpus) {
      const Holding& h = table_.memory.at(id, gpu);
      if (h.resident + h.coming <= largest) continue;
      largest = h.resident + h.coming;
      most = id;
    }
  }
  return most;
}

}  // namespace gpurota::sched
