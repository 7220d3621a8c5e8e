#include "sched/turn_table.h"

#include "sched/host_needs.h"

#include <algorithm>

namespace gpurota::sched {
namespace {

bool share(const Slots& some, const Slots& others) {
  return std::any_of(some.begin(), some.end(), [&](GpuSlot g) { return contains(others, g); });
}

}  // namespace

LeaseState* TurnTable::lease_of(TenantId tenant) {
  const auto found = tenants.find(tenant);
  return found == tenants.end() ? nullptr : &leases.at(found->second.lease);
}

void TurnTable::report(Trouble trouble, LeaseId lease, TenantId tenant, bool stop) {
  actions.push_back(ReportTrouble{trouble, lease, tenant, stop, {}, {}});
}

void TurnTable::report_debt(LeaseId lease, Duration ends_in) {
  actions.push_back(ReportTrouble{Trouble::kNotYielding, lease, {}, false, {}, ends_in});
}

Duration TurnTable::owed(const LeaseState& lease) const {
  Duration most = lease.drain_owed;
  for (const TenantId id : lease.tenants) {
    for (const auto& [gpu, debt] : tenants.at(id).moves) most = std::max(most, debt.owed);
  }
  return most;
}

bool TurnTable::owes(const LeaseState& lease) const {
  if (lease.is_held_up || lease.phase == Phase::kLeaving) return true;
  return std::any_of(lease.tenants.begin(), lease.tenants.end(), [&](TenantId id) {
    return tenants.at(id).can_answer() &&
           std::any_of(lease.gpus.begin(), lease.gpus.end(), [&](GpuSlot gpu) {
             const Holding& held = memory.at(id, gpu);
             return !(held.leaving + held.coming).is_zero();
           });
  });
}

bool TurnTable::wants(const LeaseState& lease) const {
  if (lease.aside) return false;
  return std::any_of(lease.tenants.begin(), lease.tenants.end(), [&](TenantId id) {
    const TenantState& t = tenants.at(id);
    return t.reachable && !t.dead &&
           (t.waiting > 0 || !t.growth.empty() || (t.busy && lease.phase != Phase::kApart));
  });
}

bool TurnTable::takes_turns(const LeaseState& lease, GpuSlot gpu) const {
  if (!gpus[gpu.value].contended) return false;
  const Holding h = memory.of_lease(lease.terms.id, gpu);
  return !(h.movable + h.wired + h.wired_unbacked).is_zero();
}

Slots TurnTable::turn_gpus(const LeaseState& lease) const {
  Slots contended;
  for (GpuSlot gpu : lease.gpus) {
    if (takes_turns(lease, gpu)) contended.push_back(gpu);
  }
  return contended;
}

bool TurnTable::conflict(const LeaseState& a, const LeaseState& b) const {
  return share(turn_gpus(a), turn_gpus(b));
}

std::vector<LeaseState*> TurnTable::claimants(const Slots& of, LeaseId except) {
  std::vector<LeaseState*> found;
  for (auto& [id, lease] : leases) {
    if (id == except || lease.phase == Phase::kApart) continue;
    if (share(of, turn_gpus(lease))) found.push_back(&lease);
  }
  return found;
}

bool TurnTable::waits_for_room(const LeaseState& lease, GpuSlot gpu) const {
  const Holding h = memory.of_lease(lease.terms.id, gpu);
  return !(h.unbacked + h.wired_unbacked).is_zero();
}

bool TurnTable::cannot_leave(const LeaseState& lease, GpuSlot gpu) const {
  return lease.phase == Phase::kLeaving && waits_for_room(lease, gpu) &&
         now >= lease.closed_at + settings.drain_patience;
}

bool TurnTable::can_give(const TenantState& tenant) const {
  return tenant.can_answer() && tenant.retry_at <= now;
}

Bytes TurnTable::may_go_out() const { return HostNeeds(memory).left_for_moves() - settings.piece; }

}  // namespace gpurota::sched
